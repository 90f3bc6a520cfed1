import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'

/** One run of requests over one connection, always `inFlight` of them open. */
export interface LoadRequest {
  readonly port: number
  readonly path: string
  /** One gRPC message with its frame header. */
  readonly body: Buffer
  readonly inFlight: number
  readonly requests: number
}

/** The load generator for machines without h2load. @returns requests per second. */
export async function http2Load(load: LoadRequest): Promise<number> {
  const session = connect(`http://127.0.0.1:${load.port}`)
  try {
    const started = performance.now()
    await new Promise<void>((resolve, reject) => {
      session.once('error', reject)
      new Run(session, load, resolve, reject).start()
    })
    return load.requests / ((performance.now() - started) / 1000)
  } finally {
    session.close()
  }
}

class Run {
  readonly #session: ClientHttp2Session
  readonly #load: LoadRequest
  readonly #resolve: () => void
  readonly #reject: (error: Error) => void
  readonly #headers: Readonly<Record<string, string>>
  #begun = 0
  #ended = 0

  constructor(
    session: ClientHttp2Session,
    load: LoadRequest,
    resolve: () => void,
    reject: (error: Error) => void,
  ) {
    this.#session = session
    this.#load = load
    this.#resolve = resolve
    this.#reject = reject
    this.#headers = {
      ':method': 'POST',
      ':path': load.path,
      'content-type': 'application/grpc',
      te: 'trailers',
    }
  }

  start(): void {
    const first = Math.min(this.#load.inFlight, this.#load.requests)
    for (let i = 0; i < first; i++) this.#next()
  }

  #next(): void {
    this.#begun += 1
    const stream: ClientHttp2Stream = this.#session.request({ ...this.#headers })
    let status: unknown
    stream.on('response', (headers) => {
      status ??= headers['grpc-status']
    })
    stream.on('trailers', (headers) => {
      status ??= headers['grpc-status']
    })
    stream.on('error', this.#reject)
    stream.on('close', () => this.#closed(status))
    stream.resume()
    stream.end(this.#load.body)
  }

  #closed(status: unknown): void {
    if (status !== '0') this.#reject(new Error(`grpc-status is ${String(status)}, want 0`))
    this.#ended += 1
    if (this.#ended === this.#load.requests) this.#resolve()
    else if (this.#begun < this.#load.requests) this.#next()
  }
}
