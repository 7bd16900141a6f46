//! Builds a client's rows from plain async functions.

use std::sync::Arc;

use futures::future::BoxFuture;
use twolane::in_cpu_context;

use super::{Answer, Ask, Client, Make, Mark, Ready, Shows, Way, World};
use crate::BoxError;
use crate::clock::Work;
use crate::lanes::Cpu;
use crate::servers::Kind;

/// How a `C` is made, and how the I/O side uses it.
pub(super) struct Rows<C> {
    made: Client,
    connect: Connect<C>,
    request: fn(C) -> Ask,
}

type Connect<C> = Arc<dyn Fn(World) -> BoxFuture<'static, Result<C, BoxError>> + Send + Sync>;

/// Makes an [`Ask`] from an async function.
pub(super) fn ask<C, F, A>(client: C, request: impl Fn(C) -> F + Send + Sync + 'static) -> Ask
where
    C: Clone + Send + Sync + 'static,
    F: Future<Output = Result<A, BoxError>> + Send + 'static,
    A: Into<Answer>,
{
    Arc::new(move || {
        let request = request(client.clone());
        Box::pin(async { Ok(request.await?.into()) })
    })
}

/// Each request in a task of the I/O runtime.
fn by_hand(request: &Ask, world: &World) -> Ask {
    let io = world.cpu.io().clone();
    let request = request.clone();
    Arc::new(move || {
        let task = io.spawn(request());
        Box::pin(async { task.await? })
    })
}

impl<C: Clone + Send + Sync + 'static> Rows<C> {
    /// `connect` runs on the I/O side.
    pub(super) fn new<F>(
        name: &'static str,
        server: Option<Kind>,
        connect: impl Fn(World) -> F + Send + Sync + 'static,
        request: fn(C) -> Ask,
    ) -> Self
    where
        F: Future<Output = Result<C, BoxError>> + Send + 'static,
    {
        let connect: Connect<C> = Arc::new(move |world| Box::pin(connect(world)));
        let connected = connect.clone();
        let plain: Make = Arc::new(move |world| {
            let client = connected(world);
            Box::pin(async move {
                let request = request(client.await?);
                let job = request.clone();
                Ok(Ready { request, job })
            })
        });
        let connected = connect.clone();
        let by_hand: Make = Arc::new(move |world| {
            let client = connected(world.clone());
            Box::pin(async move {
                let request = request(client.await?);
                let job = by_hand(&request, &world);
                Ok(Ready { request, job })
            })
        });
        Self {
            made: Client {
                name,
                server,
                can_be_cold: true,
                reconnects: true,
                plain,
                by_hand,
                ways: Vec::new(),
            },
            connect,
            request,
        }
    }

    /// It has one connection from the start.
    pub(super) fn always_warm(mut self) -> Self {
        self.made.can_be_cold = false;
        self
    }

    /// It is of no use once the server has cut its connection.
    pub(super) fn does_not_reconnect(mut self) -> Self {
        self.made.reconnects = false;
        self
    }

    /// A way that the guide warns of, and what happens.
    pub(super) fn warned<F, A>(
        self,
        name: &'static str,
        shows: Shows,
        job: impl Fn(C, Work) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, BoxError>> + Send + 'static,
        A: Into<Answer>,
    {
        self.way(name, Mark::Warned(shows), |c, _| c, job)
    }

    /// The plain way among tasks that compute.
    pub(super) fn warned_in_cpu_context<F, A>(
        self,
        shows: Shows,
        job: impl Fn(C, Work) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, BoxError>> + Send + 'static,
        A: Into<Answer>,
    {
        let name = "plain, in_cpu_context";
        self.warned(name, shows, move |c, work| in_cpu_context(job(c, work)))
    }

    /// The plain way where it delays no request but the job's own.
    pub(super) fn tolerated<F, A>(
        self,
        name: &'static str,
        job: impl Fn(C, Work) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, BoxError>> + Send + 'static,
        A: Into<Answer>,
    {
        self.way(name, Mark::Tolerated, |c, _| c, job)
    }

    pub(super) fn recommended<F, A>(
        self,
        name: &'static str,
        job: impl Fn(C, Work) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, BoxError>> + Send + 'static,
        A: Into<Answer>,
    {
        self.way(name, Mark::Recommended, |c, _| c, job)
    }

    /// A way in which jobs have something else, made of the client, `D`.
    pub(super) fn way<D, F, A>(
        mut self,
        name: &'static str,
        mark: Mark,
        of: impl Fn(C, &twolane::Handle) -> D + Copy + Send + Sync + 'static,
        job: impl Fn(D, Work) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        D: Clone + Send + Sync + 'static,
        F: Future<Output = Result<A, BoxError>> + Send + 'static,
        A: Into<Answer>,
    {
        let (connect, request) = (self.connect.clone(), self.request);
        let ready: Make = Arc::new(move |world| {
            let client = connect(world.clone());
            Box::pin(async move {
                let client = client.await?;
                let in_job = of(client.clone(), world.cpu.twolane());
                Ok(Ready {
                    request: request(client),
                    job: ask((in_job, world.work), move |(in_job, work)| {
                        job(in_job, work)
                    }),
                })
            })
        });
        self.made.ways.push(Way {
            name,
            mark,
            make: ready,
        });
        self
    }

    pub(super) fn done(self) -> Client {
        self.made
    }

    /// What a job asks on two plain runtimes, if it is not what the I/O side asks: as most
    /// write it, and by hand.
    pub(super) fn on_two<F, G>(
        mut self,
        plain: impl Fn(C, Cpu, Work) -> F + Copy + Send + Sync + 'static,
        by_hand: impl Fn(C, Cpu, Work) -> G + Copy + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Answer, BoxError>> + Send + 'static,
        G: Future<Output = Result<Answer, BoxError>> + Send + 'static,
    {
        self.made.plain = self.asking(plain);
        self.made.by_hand = self.asking(by_hand);
        self
    }

    fn asking<F>(&self, job: impl Fn(C, Cpu, Work) -> F + Copy + Send + Sync + 'static) -> Make
    where
        F: Future<Output = Result<Answer, BoxError>> + Send + 'static,
    {
        let (connect, request) = (self.connect.clone(), self.request);
        Arc::new(move |world| {
            let (cpu, work) = (world.cpu.clone(), world.work.clone());
            let client = connect(world);
            Box::pin(async move {
                let client = client.await?;
                Ok(Ready {
                    request: request(client.clone()),
                    job: ask((client, cpu, work), move |(client, cpu, work)| {
                        job(client, cpu, work)
                    }),
                })
            })
        })
    }
}
