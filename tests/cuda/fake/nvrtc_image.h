// nvrtc_image.h: how the code of the fake compiler begins; the program's text follows.
#pragma once

inline constexpr char kFakeCode[] = "fake code\n";
