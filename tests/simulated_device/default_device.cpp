// Makes the simulated device torch's default one. Loaded before torch, by LD_PRELOAD: `default_device` in __init__.py.
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>

bool is_simulated = false;
extern "C" void make_the_default() { is_simulated = true; }

namespace torch::tensors {  // where torch asks, in C++, for the device of a tensor that names none
c10::Device get_default_device() {
  c10::Device device(c10::DeviceType::CPU);
  if (is_simulated) device = c10::Device(c10::DeviceType::PrivateUse1);
  return device;
}
c10::DispatchKey get_default_dispatch_key() {
  return is_simulated ? c10::DispatchKey::PrivateUse1 : c10::DispatchKey::CPU;
}
}  // namespace torch::tensors
