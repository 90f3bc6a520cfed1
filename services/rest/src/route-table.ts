import { bug, ServeError } from '@tutti/errors'
import type { RequestHead } from '@tutti/http'
import findMyWay from 'find-my-way'
import type { RestCallOptions } from './call/rest-call.ts'
import type { RestMethod, RestRoute } from './call/rest-route.ts'

/** Longer than any request line that the server takes, so that the router never cuts a model's name. */
const MAX_PARAMETER_LENGTH = 65_536

type RoutesOfPath = Readonly<Partial<Record<string, RestRoute>>>

/** The route of a request. */
interface FoundRoute {
  readonly route: RestRoute
  /** Names from the path, percent-decoded. */
  readonly parameters: RestCallOptions['parameters']
}

/** No route. */
interface NoRoute {
  readonly route?: undefined
  /** The methods of the path; undefined if there is no such path. */
  readonly allowed?: readonly RestMethod[]
}

/** Finds routes by the path and the method of a request. */
export class RouteTable {
  readonly #router = findMyWay({
    maxParamLength: MAX_PARAMETER_LENGTH,
    onBadUrl: notCalled,
  })

  constructor(routes: readonly RestRoute[]) {
    for (const [path, all] of Map.groupBy(routes, (route) => route.path)) {
      const byMethod = Object.fromEntries(all.map((route) => [route.method, route]))
      // Under one method, so that the router finds a path whatever the request's is.
      this.#router.on('GET', path, notCalled, byMethod)
    }
  }

  /**
   * Finds the route of a request, or else the methods that its path has.
   *
   * @throws ServeError MALFORMED_MESSAGE for a path that does not decode.
   */
  find({ target, method }: RequestHead): FoundRoute | NoRoute {
    const found = this.#router.find('GET', target)
    // The router lets names be empty, as in /v2/models//infer.
    if (found === null || Object.values(found.params).includes('')) return {}
    const routes: RoutesOfPath | null = found.store
    if (routes === null) {
      throw new ServeError('MALFORMED_MESSAGE', `'${target}' is not a valid url component`)
    }
    const route = routes[method]
    if (route !== undefined) return { route, parameters: found.params }
    return { allowed: Object.values(routes).flatMap((one) => one?.method ?? []) }
  }
}

function notCalled(): never {
  throw bug('only routes are found, none is called')
}
