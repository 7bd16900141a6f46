//! What a query service answers: JSON lines, or Arrow's stream format.

use std::mem::take;

use axum::body::Bytes;
use axum::http::{HeaderMap, header::ACCEPT};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::{ipc::writer::StreamWriter, json::LineDelimitedWriter};

pub const ARROW: &str = "application/vnd.apache.arrow.stream";
const JSON: &str = "application/x-ndjson";

#[derive(Clone, Copy)]
pub enum Format {
    Json,
    Arrow,
}

impl Format {
    /// That which the client names first of the two. JSON if it names neither.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let accept = headers.get_all(ACCEPT).iter();
        let accept = accept.filter_map(|accept| accept.to_str().ok());
        let mut types = accept.flat_map(|accept| accept.split([',', ';']).map(str::trim));
        match types.find(|name| [ARROW, JSON].contains(name)) {
            Some(ARROW) => Self::Arrow,
            _ => Self::Json,
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Arrow => ARROW,
        }
    }

    /// What stands before the first batch, and after the last one.
    pub fn ends(self, schema: &Schema) -> Result<[Bytes; 2], ArrowError> {
        let Self::Arrow = self else {
            return Ok([Bytes::new(), Bytes::new()]);
        };
        let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
        let head = take(writer.get_mut());
        Ok([head, writer.into_inner()?].map(Bytes::from))
    }

    /// A batch as it stands between them. No batch depends on an earlier one, so several threads
    /// encode at a time.
    pub fn encode(self, batch: &RecordBatch) -> Result<Bytes, ArrowError> {
        Ok(match self {
            Self::Json => {
                let mut writer = LineDelimitedWriter::new(Vec::new());
                writer.write(batch)?;
                writer.finish()?;
                writer.into_inner()
            }
            Self::Arrow => {
                let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
                writer.get_mut().clear(); // the schema, which the head has
                writer.write(batch)?;
                take(writer.get_mut())
            }
        }
        .into())
    }
}
