//! Faults in how commands are run and how they end.

use std::sync::PoisonError;
use std::time::Duration;

use sandbox_core::{Error, ErrorKind, ExecuteResponse, Program, Status};

use super::{Fault, SEEN, none};
use crate::broken::Hooks;

pub(super) fn all() -> Vec<Fault> {
    [endings(), timeouts(), surroundings()].concat()
}

fn endings() -> Vec<Fault> {
    vec![
        Fault {
            from: "B039",
            name: "every command ends with zero",
            groups: &["execute"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if matches!(r.status, Status::Exited(_)) {
                        r.status = Status::Exited(0);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B038",
            name: "an exit code above 127 is minus one",
            groups: &["execute"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if matches!(r.status, Status::Exited(128..)) {
                        r.status = Status::Exited(-1);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B011",
            name: "a lost stream is an exit with zero",
            groups: &["lifecycle"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if matches!(r.status, Status::Lost(_)) {
                        r.status = Status::Exited(0);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B190",
            name: "the death of the sandbox is the command's own 137",
            groups: &["lifecycle"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if matches!(r.status, Status::Lost(_)) {
                        r.status = Status::Exited(137);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B050",
            name: "the daemon's refusal comes as the output of a command",
            groups: &["lifecycle"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let refusal = "Error response from daemon: container is not running\n";
                        match broken.inner.execute(&c).await {
                            Err(e) if e.kind() == ErrorKind::SandboxGone => {
                                Ok(ExecuteResponse::new(Status::Exited(1), refusal, ""))
                            }
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "a missing program is an error of the backend",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let r = broken.inner.execute(&c).await?;
                        if r.status == Status::Exited(127) {
                            return Err(Error::new(ErrorKind::NotFound, "no such program"));
                        }
                        Ok(r)
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B167",
            name: "a command is sent twice",
            groups: &["execute", "cancel", "delete"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        broken.inner.execute(&c).await?;
                        broken.inner.execute(&c).await
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B009",
            name: "every command costs a second more",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let r = broken.inner.execute(&c).await;
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        r
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "a background child holds the call",
            groups: &["execute"],
            hooks: Hooks {
                command: Some(|c| {
                    if let Program::Shell(text) = &mut c.program
                        && text.contains("sleep 20")
                    {
                        *text = format!("{}; sleep 9", text.replace("exit 5", "true"));
                    }
                }),
                ..none()
            },
        },
    ]
}

fn timeouts() -> Vec<Fault> {
    vec![
        Fault {
            from: "B033",
            name: "a timeout leaves the process running",
            groups: &["timeout"],
            hooks: Hooks {
                execute: Some(|broken, mut c| {
                    Box::pin(async move {
                        let (inner, timeout) = (broken.inner.clone(), c.timeout.take());
                        let task = tokio::spawn(async move { inner.execute(&c).await });
                        let limit = timeout.unwrap_or(Duration::from_secs(1000));
                        match tokio::time::timeout(limit, task).await {
                            Ok(Ok(r)) => r,
                            Ok(Err(e)) => Err(Error::new(ErrorKind::Unexpected, "task").because(e)),
                            Err(_) => Ok(ExecuteResponse::new(Status::TimedOut, "", "")),
                        }
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B021",
            name: "a timeout is an error without the output",
            groups: &["timeout"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let r = broken.inner.execute(&c).await?;
                        if r.status == Status::TimedOut {
                            return Err(Error::new(ErrorKind::Timeout, "the command timed out"));
                        }
                        Ok(r)
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B041",
            name: "exit code 124 is taken for a timeout",
            groups: &["timeout"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if r.status == Status::Exited(124) {
                        r.status = Status::TimedOut;
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B041",
            name: "a timeout is exit code 124",
            groups: &["timeout"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if r.status == Status::TimedOut {
                        r.status = Status::Exited(124);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B047",
            name: "the timeout of a call is not passed on",
            groups: &["timeout"],
            hooks: Hooks {
                command: Some(|c| c.timeout = Some(Duration::from_secs(9))),
                ..none()
            },
        },
        Fault {
            from: "B042",
            name: "fractions of a second are cut off the timeout",
            groups: &["timeout"],
            hooks: Hooks {
                command: Some(|c| {
                    c.timeout = c.timeout.map(|t| Duration::from_secs(t.as_secs().max(1)));
                }),
                ..none()
            },
        },
        Fault {
            from: "B043",
            name: "a timeout ends other commands too",
            groups: &["timeout"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let r = broken.inner.execute(&c).await?;
                        if r.status == Status::TimedOut {
                            broken.inner.kill().await?;
                        }
                        Ok(r)
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B206",
            name: "a dropped call leaves the command running",
            groups: &["cancel"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let inner = broken.inner.clone();
                        match tokio::spawn(async move { inner.execute(&c).await }).await {
                            Ok(r) => r,
                            Err(e) => Err(Error::new(ErrorKind::Unexpected, "task").because(e)),
                        }
                    })
                }),
                ..none()
            },
        },
    ]
}

fn surroundings() -> Vec<Fault> {
    vec![
        Fault {
            from: "B177",
            name: "a command reads the input of this process",
            groups: &["stdin"],
            hooks: Hooks {
                command: Some(|c| {
                    c.stdin
                        .get_or_insert_with(|| "{\"jsonrpc\":\"2.0\"}\n".into());
                }),
                ..none()
            },
        },
        Fault {
            from: "B177",
            name: "input is not passed on",
            groups: &["stdin"],
            hooks: Hooks {
                command: Some(|c| c.stdin = None),
                ..none()
            },
        },
        Fault {
            from: "B066",
            name: "a variable is left for the next command",
            groups: &["env"],
            hooks: Hooks {
                execute: Some(|broken, mut c| {
                    Box::pin(async move {
                        {
                            let mut left =
                                broken.env.lock().unwrap_or_else(PoisonError::into_inner);
                            left.extend(c.env.clone());
                            c.env = left.clone();
                        }
                        broken.inner.execute(&c).await
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B066",
            name: "variables are put before the text",
            groups: &["env"],
            hooks: Hooks {
                command: Some(|c| {
                    let set: Vec<String> = std::mem::take(&mut c.env)
                        .iter()
                        .map(|(k, v)| format!("export {k}=\"{v}\"; "))
                        .collect();
                    if let Program::Shell(text) = &mut c.program {
                        *text = set.concat() + text;
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B186",
            name: "the variables of this process are inside",
            groups: &["env"],
            hooks: Hooks {
                command: Some(|c| {
                    let own = std::env::vars().filter(|(k, _)| k != "PATH" && k != "HOME");
                    c.env.extend(own);
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "the cwd is ignored",
            groups: &["execute"],
            hooks: Hooks {
                command: Some(|c| c.cwd = None),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "with a missing cwd the command runs elsewhere",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, mut c| {
                    Box::pin(async move {
                        match broken.inner.execute(&c).await {
                            Err(e) if e.kind() == ErrorKind::NotFound => {
                                c.cwd = None;
                                broken.inner.execute(&c).await
                            }
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B065",
            name: "arguments are joined by spaces",
            groups: &["execute"],
            hooks: Hooks {
                command: Some(|c| {
                    if let Program::Argv(argv) = &c.program {
                        c.program = Program::Shell(argv.join(" "));
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B061",
            name: "the text is put into brackets",
            groups: &["execute"],
            hooks: Hooks {
                command: Some(|c| {
                    if let Program::Shell(text) = &mut c.program {
                        *text = format!("( {text} )");
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B031",
            name: "a last line is added to the text",
            groups: &["execute"],
            hooks: Hooks {
                command: Some(|c| {
                    if let Program::Shell(text) = &mut c.program {
                        text.push_str("\n__code=$?; exit $__code");
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B063",
            name: "text beyond 128 KiB fails as if the command had",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        if matches!(&c.program, Program::Shell(text) if text.len() > 131_071) {
                            let why = "sh: Argument list too long\n";
                            return Ok(ExecuteResponse::new(Status::Exited(1), "", why));
                        }
                        broken.inner.execute(&c).await
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B057",
            name: "every command leaves a log file",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let path = sandbox_core::SandboxPath::new("/tmp/x.stdout")?;
                        let r = broken.inner.execute(&c).await;
                        broken
                            .sh("echo log >\"${1%x.stdout}$$-$(date +%N).stdout\"", &path)
                            .await?;
                        r
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B062",
            name: "commands share one shell's directory",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, mut c| {
                    Box::pin(async move {
                        // What a long-living shell does: an earlier `cd` lasts.
                        let key = "__cwd".to_owned();
                        let last = {
                            let env = broken.env.lock().unwrap_or_else(PoisonError::into_inner);
                            env.get(&key).cloned()
                        };
                        if let (Program::Shell(text), None) = (&c.program, &c.cwd) {
                            if text.starts_with("cd /;") {
                                let mut env =
                                    broken.env.lock().unwrap_or_else(PoisonError::into_inner);
                                env.insert(key, "/".to_owned());
                            } else {
                                c.cwd = last;
                            }
                        }
                        broken.inner.execute(&c).await
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "a user is claimed and ignored",
            groups: &["capabilities"],
            hooks: Hooks {
                claims: Some(|caps| caps.execute_user = true),
                command: Some(|c| c.user = None),
                ..none()
            },
        },
    ]
}
