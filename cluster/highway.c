#include "highway.h"
