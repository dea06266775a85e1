#pragma once

#include <nanobind/nanobind.h>

namespace regard {

void bind_program(nanobind::module_& m);

}  // namespace regard
