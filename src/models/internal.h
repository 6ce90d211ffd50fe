/* internal.h - the builders of the kinds of models. */
#ifndef IPU_MODELS_INTERNAL_H
#define IPU_MODELS_INTERNAL_H

#include "models/models.h"

Status vit_graph(const Model *model, Graph *out);
Status products_graph(const Model *model, Graph *out);

#endif
