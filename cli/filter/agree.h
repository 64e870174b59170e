/* agree.h - keys are made of lines as they were when the filter was made. */
#ifndef AGREE_H
#define AGREE_H

#include "target.h"

/* Has the input make keys as it is noted with the filter, where the options do not say
 * otherwise.  If letters would then be treated otherwise, keys would be missed: complains of
 * that if keys are asked, and ends the program if they are added or removed. */
void agree_on_keys(const struct target *target, struct input *input);

/* Ends the program if keys are made otherwise for one filter than for the other. */
void agree_on_both(const struct target *target, const struct target *other);

#endif
