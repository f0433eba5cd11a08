// sum.cc: a foreign program in C++: the header-only SDK, ops that run at once.
#include <iostream>
#include <keel/keel.hpp>

int main() {
  keel::Tensor x = {1, 2}, y = {10, 20};
  std::cout << x + y << "\n";
}
