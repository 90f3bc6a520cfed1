import { timingSafeEqual } from 'node:crypto'
import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { STEPS_HEADER } from '@tutti/protocol'
import type { Parameter } from '@tutti/tensor'
import { API_GROUPS, type ApiGroup } from '../backend/api-groups.ts'
import type { Caller } from '../backend/caller.ts'
import { DecoratedBackend } from '../backend/decorated-backend.ts'
import type { InferenceBackend, Protocol, SelectorDecorator } from '../backend/inference-backend.ts'
import { compileHeaderPattern } from './header-pattern.ts'

/** Flags of tritonserver that forward headers of calls as parameters, or refuse calls without a header. */
export const HEADER_FLAGS = {
  'http-header-forward-pattern': {
    type: 'string',
    description:
      'Regular expression of RE2: headers of HTTP requests whose whole name it matches become parameters of the request. Case does not matter unless it begins with (?-i).',
  },
  'grpc-header-forward-pattern': {
    type: 'string',
    description: 'The same for the metadata of gRPC calls.',
  },
  'http-restricted-api': {
    type: 'string',
    repeatable: true,
    description: `APIS:HEADER=VALUE: HTTP calls of these APIs must bring the header. APIS are ${API_GROUPS.join(', ')}, separated by commas.`,
  },
  'grpc-restricted-protocol': {
    type: 'string',
    repeatable: true,
    description: 'The same for gRPC calls, whose metadata is called triton-grpc-protocol-HEADER.',
  },
} as const satisfies FlagTable

export type HeaderFlags = FlagValues<typeof HEADER_FLAGS>

interface WantedHeader {
  readonly name: string
  readonly value: string
}

/** The rules of one protocol. */
interface HeaderRules {
  readonly protocol: Protocol
  readonly forward: RegExp | undefined
  readonly wanted: ReadonlyMap<ApiGroup, WantedHeader>
}

/**
 * Reads the flags about headers.
 *
 * @returns a decorator whose selectors refuse calls without a wanted header, and add forwarded headers to requests as parameters.
 * @throws ServeError FLAG_INVALID
 */
export function readHeaderRules(flags: HeaderFlags): SelectorDecorator {
  const rules = { http: readRules('http', flags), grpc: readRules('grpc', flags) }
  return (protocol, select) => {
    const { forward, wanted } = rules[protocol]
    if (forward === undefined && wanted.size === 0) return select
    return (caller) => {
      refuseRestricted(rules[protocol], caller)
      const backend = select(caller)
      return forward === undefined ? backend : forwarding(backend, parametersOf(forward, caller))
    }
  }
}

function readRules(protocol: Protocol, flags: HeaderFlags): HeaderRules {
  const pattern = flags[`${protocol}-header-forward-pattern`]
  const flag = protocol === 'http' ? 'http-restricted-api' : 'grpc-restricted-protocol'
  const wanted = new Map<ApiGroup, WantedHeader>()
  for (const text of flags[flag]) {
    const [, apis = '', key = '', value = ''] = /^([^:]+):([^=]+)=(.+)$/s.exec(text) ?? []
    if (apis === '') throw flagRefusal(`--${flag}`, `got "${text}", want APIS:HEADER=VALUE`)
    const prefix = protocol === 'grpc' ? 'triton-grpc-protocol-' : ''
    for (const written of apis.split(',')) {
      const group = API_GROUPS.find((one) => one === written)
      const known = `want one of ${API_GROUPS.join(', ')}`
      if (group === undefined) throw flagRefusal(`--${flag}`, `got "${written}", ${known}`)
      if (wanted.has(group)) throw flagRefusal(`--${flag}`, `got "${group}" twice, want it once`)
      wanted.set(group, { name: `${prefix}${key}`.toLowerCase(), value })
    }
  }
  return { protocol, forward: toPattern(`--${protocol}-header-forward-pattern`, pattern), wanted }
}

function toPattern(flag: string, pattern: string | undefined): RegExp | undefined {
  return pattern === undefined || pattern === '' ? undefined : compileHeaderPattern(flag, pattern)
}

function refuseRestricted({ protocol, wanted }: HeaderRules, caller: Caller): void {
  const { group } = caller
  // The times that the steps of a request take are a trace of it.
  const groups = caller.headers[STEPS_HEADER] === undefined ? [group] : [group, 'trace' as const]
  const missing = groups.map((one) => one && wanted.get(one)).find((want) => lacks(caller, want))
  if (missing === undefined) return
  const what = protocol === 'grpc' ? 'protocol' : 'API'
  const text = `This ${what} is restricted, expecting header '${missing.name}'`
  const code = protocol === 'grpc' ? 'UNAVAILABLE' : 'PERMISSION_DENIED'
  throw new ServeError('ACCESS_DENIED', text, { code })
}

function lacks({ headers }: Caller, want: WantedHeader | undefined): boolean {
  return want !== undefined && !isSame(headers[want.name], want.value)
}

function isSame(got: unknown, want: string): boolean {
  const bytes = [Buffer.from(String(got)), Buffer.from(want)] as const
  return bytes[0].byteLength === bytes[1].byteLength && timingSafeEqual(...bytes)
}

/** Reads the parameters of a caller's headers. Names stay as the client wrote them, which only HTTP/1 keeps. */
function parametersOf(forward: RegExp, caller: Caller): ReadonlyMap<string, Parameter> {
  const { headers, rawHeaders } = caller
  const names = rawHeaders?.filter((_, i) => i % 2 === 0) ?? Object.keys(headers)
  return new Map(
    names.flatMap((name): [string, Parameter][] => {
      const value = headers[name.toLowerCase()]
      return typeof value === 'string' && forward.test(name)
        ? [[name, { kind: 'string', value }]]
        : []
    }),
  )
}

/** Wraps the backend, with parameters that every request gets beside its own. */
function forwarding(
  backend: InferenceBackend,
  added: ReadonlyMap<string, Parameter>,
): InferenceBackend {
  if (added.size === 0) return backend
  return new DecoratedBackend(backend, (model) => (request, sink, o) => {
    const parameters = new Map([...request.context.parameters, ...added])
    model.execute({ ...request, context: { ...request.context, parameters } }, sink, o)
  })
}
