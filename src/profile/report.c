#include "profile/profile.h"
Status report_render(const View *view, const char *title, Text *out)
{
    (void)view;
    (void)title;
    (void)out;
    return status_error("not yet");
}
