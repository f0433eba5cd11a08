// floats.h: elements in memory, for fake libraries whose headers do not go with simt.h.
#pragma once

enum class Float { f16, bf16, f32, f64 };
double LoadFloat(Float type, const char* at);
void StoreFloat(Float type, char* at, double v);  // rounded once to f32, then to the type
float ToTf32(float v);                            // with 10 bits after the point, to nearest
