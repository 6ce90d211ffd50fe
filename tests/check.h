/* check.h - what every test includes: cmocka and the assertion that a Status is good. */
#ifndef IPU_TESTS_CHECK_H
#define IPU_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define assert_ok(expression)                                                                      \
    do {                                                                                           \
        Status assert_status_ = (expression);                                                      \
        if (!status_ok(assert_status_))                                                            \
            fail_msg("%s", status_message(assert_status_));                                        \
    } while (0)

#endif
