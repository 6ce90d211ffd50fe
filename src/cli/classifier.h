/* classifier.h - a package as a classifier of pictures: shared by classify and bench digits. */
#ifndef IPU_CLI_CLASSIFIER_H
#define IPU_CLI_CLASSIFIER_H

#include "device/device.h"

typedef struct Classifier {
    Arena arena;
    Model model; /* from the package's text */
    Device *device;
    float *patches, *embedding, *logits;
    size_t patch_count, embedding_count, logit_count; /* embedding_count 0: no such output */
    const char *input;
} Classifier;

/* The package must outlive the classifier. */
Status classifier_open(const Package *package, const DeviceOptions *options, Classifier *out);
/* Runs classifier->patches; fills embedding and logits. */
Status classifier_run(Classifier *classifier);
void classifier_probabilities(const Classifier *classifier,
                              double *out); /* softmax of the logits */
uint32_t classifier_best(const Classifier *classifier);
Status classifier_close(Classifier *classifier);

/* A picture in characters, `columns` wide, two pixels a row of text, dark to light. */
void picture_draw(Text *text, const Picture *picture, uint32_t columns, const char *const *beside,
                  uint32_t beside_count);

#endif
