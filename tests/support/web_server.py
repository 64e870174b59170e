#!/usr/bin/env python3
"""A web server for tests: web_server.py FOLDER PORTFILE [CERT KEY]

Serves the files of FOLDER on a free port of 127.0.0.1, with ranges and ETags, and writes the
port to PORTFILE.  The first part of a path says what the server does wrong or otherwise:

    /plain/F     nothing                  /whole/F      sends whole files (200)
    /move/F      redirects to /plain/F    /round/F      redirects to itself
    /shift/F     another range            /long/F       more bytes than the range has
    /cut/F       closes in the middle     /once/F       closes in the middle, the first time
    /change/F    another ETag each time
    /bare/F      no ETag                  /text/F       no Content-Range
    /hang/F      answers after a minute
    /count       how many requests there were, connections, and bytes of bodies, and the ranges
"""
import os
import re
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder, port_file = sys.argv[1:3]
lock = threading.Lock()
counts = {"requests": 0, "connections": 0, "bytes": 0, "cuts": 0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def setup(self):
        super().setup()
        with lock:
            counts["connections"] += 1

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        parts = self.path.split("?")[0].split("/", 2)
        how, name = parts[1], parts[2] if len(parts) > 2 else ""
        if how == "count":
            body = " ".join(f"{k} {v}" for k, v in counts.items()).encode()
            return self.answer(200, {}, body)
        with lock:
            counts["requests"] += 1
            number = counts["requests"]
        if how == "move":
            return self.answer(302, {"Location": "/plain/" + name}, b"moved")
        if how == "hang":
            time.sleep(60)
        if how == "round":
            return self.answer(302, {"Location": self.path}, b"round")
        path = os.path.join(folder, os.path.basename(name))
        if not os.path.isfile(path):
            return self.answer(404, {}, b"not here")
        self.send_file(how, path, number)

    def send_file(self, how, path, number):
        size = os.path.getsize(path)
        tag = f'"{size}-{os.stat(path).st_mtime_ns}"'
        if how == "change":
            tag = f'"{number}"'
        headers = {} if how == "bare" else {"ETag": tag, "Accept-Ranges": "bytes"}
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        with open(path, "rb") as file:
            if how == "whole" or not found:
                return self.answer(200, headers, file.read())
            first, last = int(found[1]), min(int(found[2]), size - 1)
            if first >= size:
                return self.answer(416, {"Content-Range": f"bytes */{size}"}, b"")
            file.seek(first)
            body = file.read(last + 1 - first)
        self.send_range(how, headers, body, first, last, size)

    def send_range(self, how, headers, body, first, last, size):
        if how == "shift":
            first, last = first + 1, last + 1
        if how == "long":
            body += b"more"
        if how != "text":
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        with lock:
            counts["bytes"] += len(body)
            counts["cuts"] += 1
            cuts = how == "cut" or (how == "once" and counts["cuts"] == 1)
        if not cuts:
            return self.answer(206, headers, body)
        self.send_response(206)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    do_HEAD = do_GET


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients may go when they like."""


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(port_file + ".new", "w", encoding="ascii") as out:
    out.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
