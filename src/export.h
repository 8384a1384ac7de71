/* export.h - what leaves the shared library: the calls of the public headers, and nothing else.
 *
 * The build includes this ahead of every source of the library (-include) and compiles the
 * rest with -fvisibility=hidden: the first declaration the compiler meets decides, so the public
 * headers need no marks of their own, and calls inside the library go straight to their target.
 */
#ifndef WF_EXPORT_H
#define WF_EXPORT_H

#pragma GCC visibility push(default)
#include <weft/driver.h>
#include <weft/match.h>
#include <weft/weft.h>
#pragma GCC visibility pop

#endif
