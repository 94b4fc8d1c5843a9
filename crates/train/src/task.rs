//! A small task: which of ten textures is it, under noise?

use std::f32::consts::{PI, TAU};

use regraft_ir::SplitMix64;

/// Number of classes: gratings of four directions in two widths, checks, and rings.
pub const CLASSES: usize = 10;

/// How images are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Height and width of an image.
    pub side: usize,
    /// Size of the noise, relative to the texture.
    pub noise: f32,
    /// Images of one epoch.
    pub images: usize,
    /// Images that are held back.
    pub held_back: usize,
}

impl Default for Task {
    fn default() -> Task {
        Task { side: 16, noise: 1.0, images: 2048, held_back: 1024 }
    }
}

/// Images with their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    /// Pixels, image by image, row by row.
    pub pixels: Vec<f32>,
    /// The class of each image.
    pub classes: Vec<usize>,
}

impl Task {
    /// So many images; the same for the same seed.
    pub fn images(&self, count: usize, seed: u64) -> Images {
        let mut random = SplitMix64(seed);
        let mut images = Images { pixels: Vec::with_capacity(count * self.side * self.side), classes: Vec::with_capacity(count) };
        for _ in 0..count {
            let class = random.below(CLASSES);
            self.draw(class, &mut random, &mut images.pixels);
            images.classes.push(class);
        }
        images
    }

    fn draw(&self, class: usize, random: &mut SplitMix64, pixels: &mut Vec<f32>) {
        let mut unit = || random.unit() as f32;
        let (phase, other, contrast) = (TAU * unit(), TAU * unit(), 0.6 + 0.8 * unit());
        let (centre, turn) = ([4.0 + 8.0 * unit(), 4.0 + 8.0 * unit()], (unit() - 0.5) * PI / 10.0);
        let value = |row: f32, column: f32| match class {
            0..8 => {
                let angle = (class % 4) as f32 * PI / 4.0 + turn;
                let frequency = if class < 4 { TAU / 3.2 } else { TAU / 6.0 };
                (frequency * (row * angle.sin() + column * angle.cos()) + phase).sin()
            }
            8 => (TAU / 4.5 * row + phase).sin() * (TAU / 4.5 * column + other).sin() * 1.4,
            _ => {
                let distance = ((row - centre[0]).powi(2) + (column - centre[1]).powi(2)).sqrt();
                (TAU / 4.0 * distance + phase).sin()
            }
        };
        let side = self.side;
        for at in 0..side * side {
            let texture = contrast * value((at / side) as f32, (at % side) as f32);
            pixels.push(texture);
        }
        let start = pixels.len() - side * side;
        for pixel in &mut pixels[start..] {
            *pixel += self.noise * random.normal() as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_repeat_and_differ_by_class() {
        let task = Task { noise: 0.0, ..Task::default() };
        let images = task.images(200, 1);
        assert_eq!(images, task.images(200, 1));
        assert_ne!(images, task.images(200, 2));
        let counts = (0..CLASSES).map(|class| images.classes.iter().filter(|c| **c == class).count());
        assert!(counts.clone().all(|count| count > 5), "{:?}", counts.collect::<Vec<_>>());
    }
}
