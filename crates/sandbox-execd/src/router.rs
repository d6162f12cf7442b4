//! Which request is for whom.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};

use crate::daemon::Daemon;
use crate::log::{self, Level};
use crate::query::{Query, percent_decode};
use crate::respond::{ApiError, Body, Code, JSON, empty, whole, with_type};
use crate::{body, command, files, json, metrics, proxy};

/// Where a client gives the access token.
pub(crate) const TOKEN_HEADER: &str = "X-EXECD-ACCESS-TOKEN";

/// What a path leads to, without its method.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Route {
    Ping,
    Command,
    CommandStatus(String),
    CommandLogs(String),
    Files(FilesRoute),
    Directories,
    DirectoriesList,
    Metrics,
    MetricsWatch,
    /// What the real daemon has and this one has not yet.
    Missing(&'static [Method]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesRoute {
    Root,
    Info,
    Mv,
    Permissions,
    Search,
    Replace,
    Upload,
    Download,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        const POST: &[Method] = &[Method::POST];
        const POST_DELETE: &[Method] = &[Method::POST, Method::DELETE];
        const GET_DELETE: &[Method] = &[Method::GET, Method::DELETE];
        let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        if segments.iter().any(|it| it.is_empty()) {
            return None;
        }
        Some(match segments.as_slice() {
            ["ping"] => Self::Ping,
            ["command"] => Self::Command,
            ["command", "status", id] => Self::CommandStatus((*id).into()),
            ["command", id, "logs"] => Self::CommandLogs((*id).into()),
            ["files"] => Self::Files(FilesRoute::Root),
            ["files", "info"] => Self::Files(FilesRoute::Info),
            ["files", "mv"] => Self::Files(FilesRoute::Mv),
            ["files", "permissions"] => Self::Files(FilesRoute::Permissions),
            ["files", "search"] => Self::Files(FilesRoute::Search),
            ["files", "replace"] => Self::Files(FilesRoute::Replace),
            ["files", "upload"] => Self::Files(FilesRoute::Upload),
            ["files", "download"] => Self::Files(FilesRoute::Download),
            ["directories"] => Self::Directories,
            ["directories", "list"] => Self::DirectoriesList,
            ["metrics"] => Self::Metrics,
            ["metrics", "watch"] => Self::MetricsWatch,
            ["session" | "pty"] | ["code", "context"] | ["session", _, "run"] => {
                Self::Missing(POST)
            }
            ["session", _] => Self::Missing(&[Method::DELETE]),
            ["code"] => Self::Missing(POST_DELETE),
            ["code", "contexts"] | ["code", "contexts", _] | ["pty", _] => {
                Self::Missing(GET_DELETE)
            }
            ["pty", _, "ws"] => Self::Missing(&[Method::GET]),
            _ => return None,
        })
    }

    fn takes(&self, method: &Method) -> bool {
        let methods: &[Method] = match self {
            Self::Command | Self::Directories => &[Method::POST, Method::DELETE],
            Self::Files(FilesRoute::Root) => &[Method::DELETE],
            Self::Files(
                FilesRoute::Mv | FilesRoute::Permissions | FilesRoute::Replace | FilesRoute::Upload,
            ) => &[Method::POST],
            Self::Missing(methods) => methods,
            _ => &[Method::GET],
        };
        methods.contains(method)
    }
}

/// Answers one request, whatever it is.
pub(crate) async fn handle(
    daemon: &Arc<Daemon>,
    request: Request<Incoming>,
    peer: Option<SocketAddr>,
) -> Response<Body> {
    log::line(
        Level::Info,
        format_args!(
            "{} {}",
            request.method(),
            request.uri().path().escape_debug()
        ),
    );
    if let Some(token) = &daemon.options.token {
        let given = request.headers().get(TOKEN_HEADER);
        if !given.is_some_and(|it| token.matches(it.as_bytes())) {
            let why = format!("Unauthorized: invalid or missing header {TOKEN_HEADER}");
            let body = json::Object::new().str("error", why).finish();
            return with_type(StatusCode::UNAUTHORIZED, JSON, body);
        }
    }
    let request = match proxy::target(daemon, request) {
        proxy::Target::Here(request) => request,
        proxy::Target::Elsewhere(request, to) => {
            return proxy::forward(daemon, request, to, peer).await;
        }
        proxy::Target::Nowhere(response) => return response,
    };
    let path = percent_decode(request.uri().path(), false)
        .and_then(|it| String::from_utf8(it).ok())
        .unwrap_or_default();
    match Route::of(&path).filter(|it| it.takes(request.method())) {
        Some(route) => dispatch(daemon, route, request)
            .await
            .unwrap_or_else(ApiError::into_response),
        None => not_found(&path, request.method()),
    }
}

fn not_found(path: &str, method: &Method) -> Response<Body> {
    let other = match path.strip_suffix('/') {
        Some(other) => other.to_owned(),
        None => format!("{path}/"),
    };
    let elsewhere = Route::of(&other).is_some_and(|it| it.takes(method));
    if elsewhere && let Ok(location) = HeaderValue::from_str(&other) {
        let get = method == Method::GET;
        let mut response = Response::new(whole(if get {
            format!("<a href=\"{other}\">Moved Permanently</a>.\n\n")
        } else {
            String::new()
        }));
        if get {
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
        } else {
            *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        }
        response.headers_mut().insert(LOCATION, location);
        return response;
    }
    with_type(
        StatusCode::NOT_FOUND,
        HeaderValue::from_static("text/plain"),
        "404 page not found",
    )
}

async fn dispatch(
    daemon: &Arc<Daemon>,
    route: Route,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let query = Query::parse(request.uri().query());
    let delete = request.method() == Method::DELETE;
    match route {
        Route::Ping => Ok(empty()),
        Route::Command if delete => command::interrupt(daemon, &query).await,
        Route::Command => {
            let (body, _share) = body::read(&daemon.budget, request.into_body()).await?;
            command::run(daemon, &body).await
        }
        Route::CommandStatus(id) => command::status(daemon, &id),
        Route::CommandLogs(id) => command::logs(daemon, &id, &query).await,
        Route::Directories if delete => files::dirs::remove(daemon, query.paths()).await,
        Route::Directories => {
            let (body, share) = body::read(&daemon.budget, request.into_body()).await?;
            files::dirs::make(daemon, body, share).await
        }
        Route::DirectoriesList => files::dirs::list(daemon, &query).await,
        Route::Files(route) => files_route(daemon, route, request, query).await,
        Route::Metrics => metrics::once().await,
        Route::MetricsWatch => Ok(metrics::watch()),
        Route::Missing(_) => Err(ApiError::new(
            StatusCode::NOT_IMPLEMENTED,
            Code::NotSupported,
            "this execd has no sessions, terminals and code contexts; run a command instead",
        )),
    }
}

async fn files_route(
    daemon: &Arc<Daemon>,
    route: FilesRoute,
    request: Request<Incoming>,
    query: Query,
) -> Result<Response<Body>, ApiError> {
    match route {
        FilesRoute::Root => files::remove(daemon, query.paths()).await,
        FilesRoute::Info => files::info::info(daemon, query.paths()).await,
        FilesRoute::Search => files::search::search(daemon, &query).await,
        FilesRoute::Download => files::download::download(daemon, &query, request.headers()).await,
        FilesRoute::Upload => {
            let kind = request.headers().get(CONTENT_TYPE).cloned();
            files::upload::upload(daemon, kind, request.into_body()).await
        }
        FilesRoute::Mv | FilesRoute::Permissions | FilesRoute::Replace => {
            let (body, share) = body::read(&daemon.budget, request.into_body()).await?;
            match route {
                FilesRoute::Mv => files::mv(daemon, body, share).await,
                FilesRoute::Permissions => files::permissions::change(daemon, body, share).await,
                _ => {
                    let verbose = query.get("verbose") == b"true";
                    files::replace::replace(daemon, body, share, verbose).await
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        assert_eq!(Route::of("/ping"), Some(Route::Ping));
        assert_eq!(
            Route::of("/command/status/x"),
            Some(Route::CommandStatus("x".into()))
        );
        assert_eq!(
            Route::of("/command/x/logs"),
            Some(Route::CommandLogs("x".into()))
        );
        for path in [
            "",
            "/",
            "ping",
            "/ping/",
            "//ping",
            "/command/",
            "/nope",
            "/files/info/x",
        ] {
            assert_eq!(Route::of(path), None, "{path}");
        }
        assert!(Route::of("/command").unwrap().takes(&Method::DELETE));
        assert!(!Route::of("/command").unwrap().takes(&Method::GET));
        assert!(!Route::of("/ping").unwrap().takes(&Method::HEAD));
        assert!(!Route::of("/files/info").unwrap().takes(&Method::PUT));
        assert!(Route::of("/pty/x/ws").unwrap().takes(&Method::GET));
    }

    #[test]
    fn a_slash_too_many_is_sent_elsewhere_and_the_rest_is_not_found() {
        let moved = not_found("/ping/", &Method::GET);
        assert_eq!(moved.status(), 301);
        assert_eq!(moved.headers()[LOCATION], "/ping");
        assert_eq!(not_found("/command/", &Method::POST).status(), 307);
        assert_eq!(not_found("/ping", &Method::HEAD).status(), 404);
        assert_eq!(not_found("/nope/", &Method::GET).status(), 404);
    }
}
