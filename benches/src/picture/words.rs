//! Words in a picture, and the colours that all pictures share.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn = Result<(), Box<dyn Error>>;

pub const INK: RGBColor = RGBColor(38, 43, 51);
pub const FAINT: RGBColor = RGBColor(112, 120, 132);
pub const GRID: RGBColor = RGBColor(229, 232, 236);

/// `at` is the top of the words, and their side that `align` names.
pub fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    size: u32,
    colour: &RGBColor,
    align: HPos,
) -> Drawn {
    let style = ("sans-serif", size)
        .into_font()
        .color(colour)
        .pos(Pos::new(align, VPos::Top));
    area.draw(&Text::new(words, at, style))?;
    Ok(())
}
