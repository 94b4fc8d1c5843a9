//! Inputs changed in their last digit: the model amplifies any rounding as it amplifies this.

use regraft_runtime::{DType, Feeds, HostTensor};

/// The same inputs with every second finite element moved to a neighbouring number; `None` if no
/// input has such elements.
pub fn perturbed(feeds: &Feeds) -> Option<Feeds> {
    let mut moved = Feeds::new();
    let mut any = false;
    for (name, tensor) in feeds.iter() {
        let (tensor, changed) = match tensor.dtype() {
            DType::F32 => by_one_bit::<4>(tensor),
            DType::F64 => by_one_bit::<8>(tensor),
            _ => (tensor.clone(), false),
        };
        any |= changed;
        moved.insert(name.to_string(), tensor);
    }
    any.then_some(moved)
}

/// Flips the last bit of every second element of `SIZE` bytes, except zeros and non-finite values.
fn by_one_bit<const SIZE: usize>(tensor: &HostTensor) -> (HostTensor, bool) {
    let mut bytes = tensor.bytes().to_vec();
    let mut changed = false;
    let last = if cfg!(target_endian = "little") { 0 } else { SIZE - 1 };
    for (at, value) in tensor.to_f64().into_iter().enumerate().step_by(2) {
        if value != 0.0 && value.is_finite() {
            bytes[at * SIZE + last] ^= 1;
            changed = true;
        }
    }
    let moved = HostTensor::from_bytes(tensor.dtype(), tensor.shape().to_vec(), &bytes).unwrap_or_else(|_| tensor.clone());
    (moved, changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_move_by_their_last_digit() {
        let bytes: Vec<u8> = [1.0f32, 2.0, -3.5, 0.0, 0.0, f32::INFINITY, f32::INFINITY].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut feeds = Feeds::new();
        feeds.insert("x", HostTensor::from_bytes(DType::F32, vec![7], &bytes).unwrap());
        let moved = perturbed(&feeds).unwrap().get("x").unwrap().to_f64();
        let before = feeds.get("x").unwrap().to_f64();
        for (at, (a, b)) in before.iter().zip(&moved).enumerate() {
            let moves = at == 0 || at == 2;
            assert_eq!(a != b, moves, "{at}");
            assert!(a == b || (a - b).abs() <= 1e-6 * a.abs(), "{at}");
        }
        let mut whole = Feeds::new();
        whole.insert("n", HostTensor::from_bytes(DType::I32, vec![1], &7i32.to_ne_bytes()).unwrap());
        assert!(perturbed(&whole).is_none());
    }
}
