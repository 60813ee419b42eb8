#pragma once

#include <gnuradio/attributes.h>

#ifdef gnuradio_fadelab_EXPORTS
#define FADELAB_API __GR_ATTR_EXPORT
#else
#define FADELAB_API __GR_ATTR_IMPORT
#endif
