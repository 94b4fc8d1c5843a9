//! Normalization.

use super::{Builder, Dim, Value, attribute};

impl Builder {
    /// Batch normalization at inference. Its scales lie around `gain`; its statistics are positive
    /// and nontrivial.
    pub(crate) fn batch_norm(&mut self, name: &str, x: &Value, epsilon: f32, gain: f32) -> Value {
        let dims = [x.size(1)];
        self.within(name, |b| {
            let scale = b.weight("weight", &dims, 0.7 * gain, 1.3 * gain);
            let bias = b.weight("bias", &dims, -0.2 * gain, 0.2 * gain);
            let mean = b.weight("running_mean", &dims, -0.2, 0.2);
            let variance = b.weight("running_var", &dims, 0.6, 1.4);
            let attributes = vec![attribute::float("epsilon", epsilon), attribute::float("momentum", 0.9)];
            let inputs = [x, &scale, &bias, &mean, &variance];
            b.node("BatchNormalization", &inputs, attributes, x.element, x.shape.clone())
        })
    }

    /// Layer normalization over the last axis, as nine primitive steps.
    pub(crate) fn layer_norm(&mut self, name: &str, x: &Value, epsilon: f32) -> Value {
        let dims = [x.size(x.rank() - 1)];
        self.within(name, |b| {
            let scale = b.weight("weight", &dims, 0.8, 1.2);
            let bias = b.weight("bias", &dims, -0.1, 0.1);
            let mean = b.mean_of_last_axis(x);
            let centered = b.sub(x, &mean);
            let squared = b.pow_scalar(&centered, 2.0);
            let variance = b.mean_of_last_axis(&squared);
            let positive = b.add_scalar(&variance, epsilon);
            let deviation = b.sqrt(&positive);
            let normal = b.div(&centered, &deviation);
            let scaled = b.mul(&normal, &scale);
            b.add(&scaled, &bias)
        })
    }

    /// Local response normalization over `size` neighbouring channels.
    pub(crate) fn local_response_norm(&mut self, x: &Value, size: i64, alpha: f32, beta: f32, bias: f32) -> Value {
        let attributes = vec![
            attribute::float("alpha", alpha),
            attribute::float("beta", beta),
            attribute::float("bias", bias),
            attribute::int("size", size),
        ];
        self.node("LRN", &[x], attributes, x.element, x.shape.clone())
    }

    fn mean_of_last_axis(&mut self, x: &Value) -> Value {
        let mut shape = x.shape.clone();
        shape[x.rank() - 1] = Dim::Fixed(1);
        let attributes = vec![attribute::ints("axes", &[-1]), attribute::int("keepdims", 1)];
        self.node("ReduceMean", &[x], attributes, x.element, shape)
    }
}
