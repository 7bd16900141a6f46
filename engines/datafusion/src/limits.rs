//! [`SqlLimits`]: what a text may have before DataFusion plans it.

mod weight;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::config::Dialect;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use weight::{TooMuch, weigh};

/// The stack that planning has for each operator, in bytes: four times what the parser was seen to
/// use for one, unoptimized.
const STACK: usize = 192 << 10;
const MIN_STACK: usize = 2 << 20;

/// How large and how deep a text may be that [`sql_on`](crate::sql_on) and
/// [`sql_with_options_on`](crate::sql_with_options_on) plan.
///
/// DataFusion recurses where a statement nests or repeats: in a sum of 100 terms it is 100 levels
/// deep, and a stack that overflows ends the process. Some texts of 100 bytes it would plan for
/// hours, and a thread that plans is not freed by a drop. So a text is refused, before it is parsed
/// or planned, if it exceeds one of these limits. Its error is a
/// [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan) that names the value, the
/// limit and the field.
///
/// To raise a limit, add it to the session, as an extension of its configuration. No SQL changes
/// it there.
///
/// # Cost
///
/// The default limits bound planning, unoptimized, to 2 s of CPU time for all that the tests try,
/// and to 8 s for a sort by 996 expressions; optimized it takes a fraction of that. The time rises
/// faster than a limit: twice the `depth` takes four times as long or more. Each thread that plans
/// reserves `operators` times 192 KiB of address space for its stack meanwhile, and uses what it
/// touches.
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
    /// The operators, keywords and opening brackets of the text: all but names, literals, commas,
    /// dots and closing brackets. Default: 1,000.
    pub operators: usize,
    /// How deep brackets nest that open after a keyword, such as `cast(` and `from (`. The parser
    /// reads such brackets twice or more if there is an error in them, those in these four times,
    /// and so on. Default: 12.
    pub brackets: usize,
    /// The levels of the statement's plan and of its longest expression. One term of a sum or one
    /// condition is one, a join, a window or a subquery in an expression four, an array in the name
    /// of a type eight. Default: 200.
    pub depth: usize,
    /// The expressions that the statement grows to when each CTE stands at its references, inner
    /// columns in outer expressions, and `between`, `in`, `case` and `coalesce` as comparisons. A
    /// table counts for 100. It is an upper bound for DataFusion's own rewrites; functions and
    /// views of the session count as if they were written out as they stand. Default: 20,000.
    pub weight: u64,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self {
            bytes: 16 << 10,
            operators: 1_000,
            brackets: 12,
            depth: 200,
            weight: 20_000,
        }
    }
}

impl SqlLimits {
    pub(crate) fn of(context: &SessionContext) -> Self {
        let own = context.copied_config().get_extension::<Self>();
        own.map_or_else(Self::default, |own| *own)
    }

    pub(crate) fn stack(&self) -> usize {
        self.operators.saturating_mul(STACK).max(MIN_STACK)
    }

    /// Before the text is parsed: the parser recurses where a text nests, and not everywhere with
    /// a limit of its own.
    pub(crate) fn check_text(&self, sql: &str, dialect: Dialect) -> Result<()> {
        let (bytes, most) = (sql.len(), self.bytes);
        if bytes > most {
            return plan_err!("the SQL text has {bytes} bytes, {}", remedy(most, "bytes"));
        }
        let dialect = dialect_from_str(dialect)
            .ok_or_else(|| plan_datafusion_err!("unknown SQL dialect: {dialect}"))?;
        // What does not tokenize does not parse, and the parser says why.
        let tokens = Tokenizer::new(&*dialect, sql)
            .tokenize()
            .unwrap_or_default();
        let (operators, most) = (tokens.iter().filter(nests).count(), self.operators);
        if operators > most {
            return plan_err!(
                "the SQL text has {operators} operators, keywords and brackets, {}",
                remedy(most, "operators")
            );
        }
        let (brackets, most) = (deepest_bracket(&tokens), self.brackets);
        if brackets > most {
            return plan_err!(
                "the SQL text nests {brackets} brackets that follow a keyword, {}",
                remedy(most, "brackets")
            );
        }
        Ok(())
    }

    /// Before the statement is planned.
    pub(crate) fn check_statement(&self, statement: &Statement) -> Result<()> {
        let weighed = match statement {
            Statement::Statement(statement) => weigh(&**statement, self.depth, self.weight),
            Statement::Explain(explain) => return self.check_statement(&explain.statement),
            Statement::CopyTo(CopyToStatement {
                source: CopyToSource::Query(query),
                ..
            }) => weigh(&**query, self.depth, self.weight),
            _ => Ok(()),
        };
        match weighed {
            Ok(()) => Ok(()),
            Err(TooMuch::Depth(depth)) => plan_err!(
                "the SQL statement is {depth} levels deep or more, {}",
                remedy(self.depth, "depth")
            ),
            Err(TooMuch::Weight(weight)) => plan_err!(
                "the SQL statement grows to {weight} expressions or more, {}",
                remedy(self.weight, "weight")
            ),
        }
    }
}

fn remedy(most: impl std::fmt::Display, field: &str) -> String {
    format!("and the limit is {most}: shorten it, or raise `SqlLimits::{field}` of the session")
}

/// How deep brackets nest that open after a keyword. The parser tries what is in them in two ways or
/// more, and so do those in them: `2^n` times if there is an error in the innermost.
fn deepest_bracket(tokens: &[Token]) -> usize {
    let tokens = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    let (mut open, mut depth, mut deepest, mut after_keyword) = (Vec::new(), 0, 0, false);
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                open.push(after_keyword);
                depth += usize::from(after_keyword);
                deepest = deepest.max(depth);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                depth -= usize::from(open.pop().unwrap_or(false));
            }
            _ => (),
        }
        after_keyword = is_keyword(token);
    }
    deepest
}

fn is_keyword(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword != Keyword::NoKeyword)
}

/// Whether more of these can make a statement deeper.
fn nests(token: &&Token) -> bool {
    match token {
        Token::Word(_) => is_keyword(token),
        Token::Whitespace(_) | Token::Comma | Token::Period | Token::SemiColon => false,
        Token::RParen | Token::RBracket | Token::RBrace => false,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => false,
        _ => true,
    }
}
