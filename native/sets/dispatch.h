// Which instruction sets this build has and this processor can run, and the one in use.
#pragma once

#include <string>
#include <vector>

#include "table.h"

namespace regard {

std::vector<const Kernels*> supported();  // fastest first
bool use(const std::string& name);  // false where there is no such set here

}  // namespace regard
