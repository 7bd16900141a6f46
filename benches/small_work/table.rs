//! A table as text and as Markdown.

pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn text(&self) -> String {
        let mut lines = vec![self.title.clone(), line(&self.columns)];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines.join("\n")
    }

    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule = format!("|---|{}", "---:|".repeat(self.columns.len() - 1));
        let mut lines = vec![format!("{}:", self.title), String::new()];
        lines.extend([row(&self.columns), rule]);
        lines.extend(self.rows.iter().map(|cells| row(cells)));
        lines.join("\n")
    }
}

fn line(cells: &[String]) -> String {
    let mut line = format!("{:12}", cells[0]);
    for cell in &cells[1..] {
        line += &format!(" {cell:>18}");
    }
    line
}
