/* profile.h - private to src/device: the samples of a call as a profile. */
#ifndef IPU_DEVICE_PROFILE_H
#define IPU_DEVICE_PROFILE_H

#include "device/backend.h"

/* An error when the package can not be profiled that way. */
Status device_check_profile(const Package *package, uint8_t profile);
Status profile_collect(const Backend *backend, const Package *package, uint8_t source, Arena *arena,
                       Profile *out);

#endif
