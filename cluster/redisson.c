#include "redisson.h"
