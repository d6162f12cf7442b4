//! The four wires: from a request to a [`Conversation`], from a [`Reply`] to a response.

use serde_json::{Value, json};

use super::{Conversation, Message, Reply};

/// The API that a stand-in speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// The chat completions of `OpenAI`: `POST /chat/completions`.
    OpenAi,
    /// Anthropic's messages: `POST /v1/messages`.
    Anthropic,
    /// Gemini's generateContent: `POST /v1beta/models/MODEL:generateContent`.
    Gemini,
    /// Ollama's own chat: `POST /api/chat`.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Whether a request to `path` is one of this wire's.
    pub(super) fn serves(self, path: &str) -> bool {
        match self {
            Self::OpenAi => path.ends_with("/chat/completions"),
            Self::Anthropic => path == "/v1/messages",
            Self::Gemini => {
                path.starts_with("/v1beta/models/") && path.ends_with(":generateContent")
            }
            Self::Ollama => path == "/api/chat",
        }
    }

    /// Takes a request apart; `None` for one that does not have this wire's form.
    pub(super) fn read(self, path: &str, body: &Value) -> Option<Conversation> {
        match self {
            Self::OpenAi | Self::Ollama => openai(body),
            Self::Anthropic => anthropic(body),
            Self::Gemini => gemini(path, body),
        }
    }

    /// The body that says `reply`; `n` makes ids differ.
    pub(super) fn write(self, model: &str, reply: &Reply, n: usize) -> String {
        let (text, call) = match reply {
            Reply::Text(text) => (text.as_str(), None),
            Reply::Call { name, args } => ("", Some((name.as_str(), args))),
            Reply::Raw(body) => return body.clone(),
            Reply::Status(..) => {
                return json!({"error": {"message": "stand-in: try again later", "type": "error"}})
                    .to_string();
            }
        };
        let id = format!("call_{n}");
        let body = match self {
            Self::OpenAi => json!({
                "id": format!("chatcmpl-{n}"), "object": "chat.completion", "created": 1_700_000_000, "model": model,
                "choices": [{
                    "index": 0,
                    "message": match call {
                        None => json!({"role": "assistant", "content": text}),
                        Some((name, args)) => json!({"role": "assistant", "content": null, "tool_calls": [
                            {"id": id, "type": "function", "function": {"name": name, "arguments": args.to_string()}}
                        ]}),
                    },
                    "finish_reason": if call.is_some() { "tool_calls" } else { "stop" },
                }],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }),
            Self::Anthropic => json!({
                "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": model,
                "content": [match call {
                    None => json!({"type": "text", "text": text}),
                    Some((name, args)) => json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": args}),
                }],
                "stop_reason": if call.is_some() { "tool_use" } else { "end_turn" },
                "stop_sequence": null,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }),
            Self::Gemini => json!({
                "candidates": [{
                    "content": {"role": "model", "parts": [match call {
                        None => json!({"text": text}),
                        Some((name, args)) => json!({"functionCall": {"name": name, "args": args}}),
                    }]},
                    "finishReason": "STOP", "index": 0,
                }],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
                "modelVersion": model, "responseId": format!("r{n}"),
            }),
            Self::Ollama => json!({
                "model": model, "created_at": "2024-01-01T00:00:00Z",
                "message": match call {
                    None => json!({"role": "assistant", "content": text}),
                    Some((name, args)) => json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": args}}]}),
                },
                "done": true, "done_reason": "stop",
                "total_duration": 1, "load_duration": 1, "prompt_eval_count": 1, "prompt_eval_duration": 1,
                "eval_count": 1, "eval_duration": 1,
            }),
        };
        body.to_string()
    }
}

/// A string, or the texts of an array of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(s) => s.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// `OpenAI`'s form, which Ollama's own differs from in that arguments are no text.
fn openai(body: &Value) -> Option<Conversation> {
    let mut c = Conversation {
        model: body["model"].as_str()?.to_owned(),
        ..Conversation::default()
    };
    for tool in body["tools"].as_array().into_iter().flatten() {
        c.tools.push(tool["function"]["name"].as_str()?.to_owned());
    }
    for m in body["messages"].as_array()? {
        let said = text(&m["content"]);
        match m["role"].as_str()? {
            "system" | "developer" => c.system.push_str(&said),
            "user" => c.messages.push(Message::User(said)),
            "tool" => c.messages.push(Message::Answer(said)),
            "assistant" => {
                if !said.is_empty() {
                    c.messages.push(Message::Model(said));
                }
                for call in m["tool_calls"].as_array().into_iter().flatten() {
                    let args = &call["function"]["arguments"];
                    c.messages.push(Message::Call {
                        name: owned(&call["function"]["name"]),
                        args: match args.as_str() {
                            Some(text) => serde_json::from_str(text).ok()?,
                            None => args.clone(),
                        },
                    });
                }
            }
            _ => return None,
        }
    }
    Some(c)
}

fn anthropic(body: &Value) -> Option<Conversation> {
    let mut c = Conversation {
        model: body["model"].as_str()?.to_owned(),
        system: text(&body["system"]),
        ..Conversation::default()
    };
    body["max_tokens"].as_u64()?;
    for tool in body["tools"].as_array().into_iter().flatten() {
        tool["input_schema"].as_object()?;
        c.tools.push(tool["name"].as_str()?.to_owned());
    }
    for m in body["messages"].as_array()? {
        let user = match m["role"].as_str()? {
            "user" => true,
            "assistant" => false,
            _ => return None,
        };
        let said = |s: String| {
            if user {
                Message::User(s)
            } else {
                Message::Model(s)
            }
        };
        let Some(blocks) = m["content"].as_array() else {
            c.messages.push(said(text(&m["content"])));
            continue;
        };
        for block in blocks {
            c.messages.push(match block["type"].as_str()? {
                "text" => said(owned(&block["text"])),
                "tool_use" => Message::Call {
                    name: owned(&block["name"]),
                    args: block["input"].clone(),
                },
                "tool_result" => Message::Answer(text(&block["content"])),
                _ => return None,
            });
        }
    }
    Some(c)
}

fn gemini(path: &str, body: &Value) -> Option<Conversation> {
    let model = path
        .strip_prefix("/v1beta/models/")?
        .strip_suffix(":generateContent")?;
    let mut c = Conversation {
        model: model.to_owned(),
        system: text(&body["systemInstruction"]["parts"]),
        ..Conversation::default()
    };
    for tool in body["tools"].as_array().into_iter().flatten() {
        for f in tool["functionDeclarations"].as_array()? {
            c.tools.push(f["name"].as_str()?.to_owned());
        }
    }
    for m in body["contents"].as_array()? {
        let user = m["role"].as_str() != Some("model");
        for part in m["parts"].as_array()? {
            c.messages
                .push(if let Some(call) = part.get("functionCall") {
                    Message::Call {
                        name: owned(&call["name"]),
                        args: call["args"].clone(),
                    }
                } else if let Some(answer) = part.get("functionResponse") {
                    Message::Answer(first_text(&answer["response"]))
                } else if user {
                    Message::User(owned(&part["text"]))
                } else {
                    Message::Model(owned(&part["text"]))
                });
        }
    }
    Some(c)
}

/// The text of a function's response, which clients wrap in an object under keys of their own.
fn first_text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Array(a) => a.iter().map(first_text).collect(),
        Value::Object(o) => o
            .values()
            .map(first_text)
            .find(|s| !s.is_empty())
            .unwrap_or_default(),
        _ => String::new(),
    }
}
