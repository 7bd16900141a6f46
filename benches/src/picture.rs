//! Bars on a time axis, as SVG: what pictures are made of.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

pub use words::Drawn;
use words::{Area, FAINT, GRID, INK};

mod words;

const WIDTH: i32 = 960;
const LEFT: i32 = 84;
const RIGHT: i32 = 28;
const BOTTOM: i32 = 52;
/// Where the first panel begins, below the title and the legend.
pub const TOP: i32 = 96;
/// The height of a row of bars.
pub const ROW: i32 = 15;
/// The height of a panel's heading.
pub const HEADING: i32 = 30;
/// What is left free below a panel.
pub const GAP: i32 = 14;

/// A picture `span` milliseconds wide.
pub struct Timeline<'a> {
    area: Area<'a>,
    span: f64,
}

impl<'a> Timeline<'a> {
    /// `height` is that of all panels.
    pub fn new(
        path: &'a Path,
        title: &str,
        height: i32,
        span: f64,
    ) -> Result<Self, Box<dyn Error>> {
        let size = (WIDTH as u32, (TOP + height + BOTTOM) as u32);
        let area = SVGBackend::new(path, size).into_drawing_area();
        area.fill(&WHITE)?;
        let this = Self { area, span };
        this.text(title, (LEFT, 14), 19, &INK, HPos::Left)?;
        Ok(this)
    }

    pub fn legend<'b>(&self, entries: impl IntoIterator<Item = (&'b RGBColor, &'b str)>) -> Drawn {
        // SVG text has no width until it is shown: near enough for a sans-serif of this size.
        let width = |name: &str| 34 + (name.len() as f64 * 6.1) as i32;
        let mut x = LEFT;
        for (colour, name) in entries {
            let mark = Rectangle::new([(x, 52), (x + 12, 64)], colour.filled());
            self.area.draw(&mark)?;
            self.text(name, (x + 17, 52), 12, &INK, HPos::Left)?;
            x += width(name);
        }
        Ok(())
    }

    /// The heading of a panel and its grid: `rows` is the height below it.
    pub fn panel(&self, heading: &str, top: i32, rows: i32) -> Drawn {
        self.text(heading, (LEFT, top + 6), 14, &INK, HPos::Left)?;
        for tick in self.ticks() {
            let x = self.x(tick);
            let line = [(x, top + HEADING), (x, top + HEADING + rows)];
            self.area.draw(&PathElement::new(line, GRID))?;
        }
        Ok(())
    }

    /// What a row is, on its left.
    pub fn name(&self, name: &str, y: i32) -> Drawn {
        self.text(name, (LEFT - 8, y + 2), 11, &FAINT, HPos::Right)
    }

    /// A word behind a bar that ends at `ms`.
    pub fn note(&self, note: &str, ms: f64, y: i32) -> Drawn {
        self.text(note, (self.x(ms) + 6, y + 2), 11, &FAINT, HPos::Left)
    }

    pub fn bar(&self, from_ms: f64, to_ms: f64, y: i32, colour: &RGBColor) -> Drawn {
        self.pixels(self.x(from_ms), self.x(to_ms), y, colour)
    }

    /// One pixel shorter, so that it can be told from the next.
    pub fn bar_apart(&self, from_ms: f64, to_ms: f64, y: i32, colour: &RGBColor) -> Drawn {
        self.pixels(self.x(from_ms), self.x(to_ms) - 1, y, colour)
    }

    fn pixels(&self, from: i32, to: i32, y: i32, colour: &RGBColor) -> Drawn {
        if to > from {
            let corners = [(from, y + 2), (to, y + ROW - 2)];
            self.area.draw(&Rectangle::new(corners, colour.filled()))?;
        }
        Ok(())
    }

    /// The axis below the last panel, which ends at `y`; and the file is written.
    pub fn finish(self, y: i32, caption: &str) -> Drawn {
        let y = y - GAP;
        let line = [(LEFT, y), (self.x(self.span), y)];
        self.area.draw(&PathElement::new(line, FAINT))?;
        for tick in self.ticks() {
            let at = (self.x(tick), y + 6);
            self.text(&format!("{tick:.0}"), at, 11, &FAINT, HPos::Center)?;
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2;
        self.text(caption, (middle, y + 26), 12, &FAINT, HPos::Center)?;
        self.area.present()?;
        Ok(())
    }

    fn x(&self, ms: f64) -> i32 {
        LEFT + (ms / self.span * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    }

    /// The times that get a line and a number.
    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let step = if self.span > 600.0 { 100.0 } else { 50.0 };
        (0..=(self.span / step) as u32).map(move |i| f64::from(i) * step)
    }

    fn text(
        &self,
        words: &str,
        at: (i32, i32),
        size: u32,
        colour: &RGBColor,
        align: HPos,
    ) -> Drawn {
        words::text(&self.area, words, at, size, colour, align)
    }
}
