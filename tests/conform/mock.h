/* mock.h - a driver for the suite itself. See mock.c. */
#ifndef CONFORM_MOCK_H
#define CONFORM_MOCK_H

#include <weft/driver.h>

extern const struct weft_driver mock_driver;

#endif
