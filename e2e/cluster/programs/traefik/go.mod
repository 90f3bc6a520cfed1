module tutti.dev/test/traefik

go 1.25.0

require github.com/traefik/traefik/v3 v3.6.12

replace (
	github.com/go-acme/lego/v4 => ./lego
	github.com/abbot/go-http-auth => github.com/containous/go-http-auth v0.4.1-0.20200324110947-a37a7636d23e
	github.com/gorilla/mux => github.com/containous/mux v0.0.0-20250523120546-41b6ec3aed59
	github.com/mailgun/minheap => github.com/containous/minheap v0.0.0-20190809180810-6e71eb837595
)
