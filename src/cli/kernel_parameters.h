/* kernel_parameters.h - parameters of kernel families as a user writes them.
 *
 * A spec holds whole numbers. Some of them stand for something else: the bits of a float
 * (epsilon_bits: written epsilon=1e-5), a precision (from=f16), an element order (order=left). */
#ifndef IPU_CLI_KERNEL_PARAMETERS_H
#define IPU_CLI_KERNEL_PARAMETERS_H

#include "kernel/kernel.h"

/* NAME=VALUE into the spec. Whole numbers are taken for every parameter, by its name in the spec.
 */
Status kernel_parameter_set(KernelSpec *spec, const char *text);

/* The name a user writes, "" when the family has no such parameter; the value; what may be written,
 * as "NAME=f16|f32|f8". */
void kernel_parameter_label(KernelFamily family, uint32_t index, char *text, size_t size);
void kernel_parameter_value(const KernelSpec *spec, uint32_t index, char *text, size_t size);
void kernel_parameter_syntax(KernelFamily family, uint32_t index, char *text, size_t size);

#endif
