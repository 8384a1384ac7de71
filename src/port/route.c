/* route.c - see route.h. */
#include "port/route.h"

const struct wf_route_ops *wf_hosts;
