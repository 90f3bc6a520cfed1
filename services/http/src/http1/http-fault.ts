/** A request that breaks HTTP/1.1, or comes too slowly. What follows it on its connection cannot be read either. */
export class HttpFault extends Error {
  /** Status of the answer. */
  readonly status: 400 | 408 | 431

  constructor(status: HttpFault['status'], message: string) {
    super(message)
    this.name = 'HttpFault'
    this.status = status
  }
}

/** Makes the fault of a request that is not HTTP. */
export function badRequest(text: string): HttpFault {
  return new HttpFault(400, text)
}
