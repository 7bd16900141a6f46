//! [`SqlLimits`]: what a text may have before DataFusion plans it, and the stack that it needs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::config::Dialect;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::keywords::Keyword::{FROM, NoKeyword};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// The stack that each operator of a text may need until it is planned, in bytes. Unoptimized, 34 KB
/// were seen where nothing limits the depth but the operators, and 100 KB where functions nest, which
/// the parser stops at 25 levels.
const PLANS: usize = 192 << 10;
/// The same once it is planned. Unoptimized, 31 KB were seen, for a cast to lists of lists.
const RUNS: usize = if cfg!(debug_assertions) { 64 } else { 32 } << 10;
/// What a text with few operators needs, if it names a view.
const LEAST: usize = 1 << 20;
/// How deep the types of the rows nest at most: what reads them recurses on a stack of its own.
const LEVELS: usize = 64;

/// How large and how nested a text may be that [`sql_on`](crate::sql_on) and
/// [`sql_with_options_on`](crate::sql_with_options_on) plan.
///
/// DataFusion recurses where a statement nests or repeats: in a sum of 100 terms it is 100 levels
/// deep, and a stack that overflows ends the process. So a text that exceeds one of these limits is
/// refused before it is parsed, and one within them has a stack that is large enough. The error is a
/// [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan) that names the value, the
/// limit and the field.
///
/// To raise a limit, add it to the session, as an extension of its configuration. No SQL changes
/// it there.
///
/// # What they do not bound
///
/// The time and the memory of planning are not bounded: DataFusion writes out what a text repeats,
/// and some texts of 200 bytes are planned for hours. No drop and no deadline ends that; it takes a
/// thread of the lane's `Low` priority, and all memory that it asks for. So let a process of its own,
/// with a limit of memory, plan the texts of strangers.
///
/// # Cost
///
/// One pass over the text, and of stacks address space: `operators` times 192 KiB for each thread
/// that plans, and so much for each operator of the text for each thread that polls or drops a part
/// of the query, unless the thread has as much left. A thread uses the pages that it touches.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::prelude::{SessionConfig, SessionContext};
/// use twolane_datafusion::SqlLimits;
///
/// let limits = SqlLimits { bytes: 64 << 10, ..Default::default() };
/// let config = SessionConfig::new().with_extension(Arc::new(limits));
/// let ctx = SessionContext::new_with_config(config);
/// # drop(ctx);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLimits {
    /// The bytes of the text. Default: 16,384.
    pub bytes: usize,
    /// The operators, keywords and opening brackets of the text, and the commas after `from`. Of
    /// brackets, `<` is one, and those in strings count. Default: 1,000.
    pub operators: usize,
    /// How deep brackets nest that open after a keyword or a comma, such as `cast(` and `from (`.
    /// The parser reads most such brackets two or three times if there is an error in them, those in
    /// these four or nine times, and so on. Default: 12.
    pub brackets: usize,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self {
            bytes: 16 << 10,
            operators: 1_000,
            brackets: 12,
        }
    }
}

impl SqlLimits {
    pub(crate) fn of(context: &SessionContext) -> Self {
        let own = context.copied_config().get_extension::<Self>();
        own.map_or_else(Self::default, |own| *own)
    }

    /// The stack that a text within the limits needs until it is planned, in bytes.
    pub(crate) fn stack(&self) -> usize {
        self.operators.saturating_mul(PLANS).max(LEAST)
    }

    /// Before the text is parsed. Returns the stack that it needs once it is planned.
    pub(crate) fn check(&self, sql: &str, dialect: Dialect) -> Result<usize> {
        within(sql.len(), "bytes", self.bytes, "bytes")?;
        let dialect = dialect_from_str(dialect)
            .ok_or_else(|| plan_datafusion_err!("unknown SQL dialect: {dialect}"))?;
        // What does not tokenize does not parse, and the parser says why.
        let tokens = Tokenizer::new(&*dialect, sql).tokenize();
        let (operators, brackets) = count(sql, &tokens.unwrap_or_default());
        let what = "operators, keywords and brackets";
        within(operators, what, self.operators, "operators")?;
        let what = "nested brackets that follow a keyword or a comma";
        within(brackets, what, self.brackets, "brackets")?;
        Ok(operators.saturating_mul(RUNS).max(LEAST))
    }
}

/// Before the rows of a query get out.
pub(crate) fn check_rows(schema: &Schema) -> Result<()> {
    match schema.fields().iter().map(levels).max() {
        Some(levels @ LEVELS..) => {
            plan_err!(
                "a column of the result nests {levels} levels deep, and the limit is {LEVELS}"
            )
        }
        _ => Ok(()),
    }
}

fn levels(field: &Arc<Field>) -> usize {
    let mut of = field.data_type();
    let mut own = 0;
    while let DataType::Dictionary(_, values) = of {
        (of, own) = (values, own + 1);
    }
    own + match of {
        DataType::List(of) | DataType::ListView(of) | DataType::FixedSizeList(of, _) => levels(of),
        DataType::LargeList(of) | DataType::LargeListView(of) | DataType::Map(of, _) => levels(of),
        DataType::RunEndEncoded(_, of) => levels(of),
        DataType::Struct(of) => of.iter().map(levels).max().unwrap_or(0),
        DataType::Union(of, _) => of.iter().map(|(_, of)| levels(of)).max().unwrap_or(0),
        _ => return own,
    } + 1
}

fn within(found: usize, what: &str, most: usize, field: &str) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    plan_err!(
        "the SQL text has {found} {what}, and the limit is {most}: shorten it, or raise \
         `SqlLimits::{field}` of the session"
    )
}

/// How many operators a text has, and how deep brackets nest that follow a keyword or a comma.
fn count(sql: &str, tokens: &[Token]) -> (usize, usize) {
    // Wherever they stand: `arrow_cast` parses a string.
    let mut operators = sql.bytes().filter(|byte| b"([{<".contains(byte)).count();
    let (mut depth, mut deepest, mut nests) = (0, 0, false);
    // Of each open bracket: whether it counts, and whether `from` stands in it.
    let mut open = vec![(false, false)];
    for token in tokens {
        let follows = nests;
        nests = matches!(token, Token::Word(it) if it.keyword != NoKeyword);
        match token {
            Token::Whitespace(_) => nests = follows,
            Token::LParen | Token::LBracket | Token::LBrace => {
                open.push((follows, false));
                depth += usize::from(follows);
                deepest = deepest.max(depth);
            }
            Token::RParen | Token::RBracket | Token::RBrace if open.len() > 1 => {
                depth -= usize::from(open.pop().is_some_and(|(counts, _)| counts));
            }
            Token::Comma => {
                nests = true;
                // Each is a join.
                operators += usize::from(open.last().is_some_and(|(_, from)| *from));
            }
            Token::Word(word) => {
                operators += usize::from(nests);
                if let (FROM, Some(last)) = (word.keyword, open.last_mut()) {
                    last.1 = true;
                }
            }
            Token::Period | Token::SemiColon | Token::Number(..) | Token::Placeholder(_) => (),
            Token::SingleQuotedString(_)
            | Token::Lt
            | Token::RParen
            | Token::RBracket
            | Token::RBrace => (),
            _ => operators += 1,
        }
    }
    (operators, deepest)
}
