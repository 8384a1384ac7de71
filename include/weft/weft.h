/* weft/weft.h - everything but match.h (header types of your own). Start with weft.7. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/base.h>
#include <weft/buf.h>
#include <weft/dir.h>
#include <weft/id.h>
#include <weft/job.h>
#include <weft/msg.h>
#include <weft/port.h>
#include <weft/req.h>
#include <weft/state.h>

#endif
