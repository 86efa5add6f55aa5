//! Splits the text of a module at semicolons, labels and the braces of bodies, in one pass.

use crate::error::{Problem, PtxError};

/// A part of the text, without comments and with single spaces.
#[derive(Debug)]
pub(super) enum Piece {
    /// `{`, with the header of an entry point or a function before it.
    Open { line: u32, header: String },
    /// `}`
    Close { line: u32 },
    /// `name:`
    Label { line: u32, name: String },
    /// A text that ends with a semicolon: an instruction or a directive.
    Statement { line: u32, text: String },
}

/// Directives that end with their line.
const LINE_DIRECTIVES: [&str; 5] = [".version", ".target", ".address_size", ".file", ".loc"];

/// All pieces, in order.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, PtxError> {
    let mut cutter = Cutter::default();
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('*', Some('/')) if in_comment => {
                    chars.next();
                    in_comment = false;
                }
                _ if in_comment => {}
                ('/', Some('*')) => {
                    chars.next();
                    in_comment = true;
                }
                ('/', Some('/')) => break,
                _ => cutter.take(number, c),
            }
        }
        cutter.end_of_line(number);
    }
    if cutter.text.is_empty() && !in_comment {
        Ok(cutter.pieces)
    } else {
        Err(PtxError::new(
            cutter.start,
            &cutter.text,
            Problem::EndOfText,
        ))
    }
}

impl Piece {
    pub(super) fn line(&self) -> u32 {
        match *self {
            Self::Open { line, .. }
            | Self::Close { line }
            | Self::Label { line, .. }
            | Self::Statement { line, .. } => line,
        }
    }
}

#[derive(Default)]
struct Cutter {
    pieces: Vec<Piece>,
    /// The text of the next piece so far, and the line of its beginning.
    text: String,
    start: u32,
    /// Whether the piece is the header of a body.
    is_header: bool,
    /// Whether the piece has several parts, so that it cannot be a label.
    has_parts: bool,
}

impl Cutter {
    fn take(&mut self, line: u32, c: char) {
        match c {
            ';' => {
                let text = self.finish();
                // Skip an empty statement.
                if !text.is_empty() {
                    let line = self.start;
                    self.pieces.push(Piece::Statement { line, text });
                }
            }
            '{' if self.text.is_empty() || self.is_header => {
                let header = self.finish();
                let line = if header.is_empty() { line } else { self.start };
                self.pieces.push(Piece::Open { line, header });
            }
            '}' if self.text.is_empty() => self.pieces.push(Piece::Close { line }),
            ':' if !self.text.is_empty() && !self.has_parts => {
                let (line, name) = (self.start, self.finish());
                self.pieces.push(Piece::Label { line, name });
            }
            _ if c.is_whitespace() => self.space(),
            _ => {
                if self.text.is_empty() {
                    self.start = line;
                }
                self.has_parts |= matches!(c, '.' | '@' | ',' | '"') || self.text.ends_with(' ');
                self.text.push(c);
            }
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(' ') {
            let header_words = [".entry", ".func"];
            self.is_header |= header_words.iter().any(|word| self.text.ends_with(word));
            self.text.push(' ');
        }
    }

    fn end_of_line(&mut self, line: u32) {
        self.space();
        // Inspect only the first line, so that a long piece is not read repeatedly.
        if self.start == line {
            let word = self.text.split(' ').next().unwrap_or_default();
            if LINE_DIRECTIVES.contains(&word) {
                self.finish();
            }
        }
    }

    fn finish(&mut self) -> String {
        (self.is_header, self.has_parts) = (false, false);
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end().len());
        text
    }
}
