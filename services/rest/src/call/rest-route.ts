import type { RestReply } from '../answers/rest-reply.ts'
import type { RestCall } from './rest-call.ts'

export type RestMethod = 'GET' | 'POST'

/** One path of the v2 HTTP API. `:name` stands for one segment. */
export interface RestRoute {
  readonly path: string
  readonly methods: readonly RestMethod[]
  /** True for what answers while the server stops too. */
  readonly isHealth?: boolean
  /** True for what only says that it is not offered. */
  readonly isRefused?: true
  answer(call: RestCall): RestReply | Promise<RestReply>
}
