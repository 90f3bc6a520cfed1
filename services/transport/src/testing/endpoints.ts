import { silentLogger, systemClock } from '@tutti/chassis'
import { type NatsServerOptions, startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { StepResponse } from '@tutti/tensor'
import { type OpenRouterEndpointOptions, openRouterEndpoint } from '../endpoint/router-endpoint.ts'
import { type OpenStepEndpointOptions, openStepEndpoint } from '../endpoint/step-endpoint.ts'
import { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
import type { BrokerOptions, StepEndpoint } from '../endpoints.ts'
import { type BrokerConnection, openBrokerConnection } from '../nats/nats-connection.ts'
import { StepDirectory } from '../step-directory.ts'
import { directOptions } from './direct-options.ts'
import {
  answer,
  executing,
  SERVED,
  sendEnvelope,
  type TestHandler,
  type TestTensor,
  until,
} from './envelopes.ts'

/** For `t.test`: skips by name where there is no nats-server. */
export const WITH_NATS = { skip: withoutNatsServer() } as const

export { collect } from '@tutti/tensor/testing'
export { answer, envelope, SERVED, tensorBytes, until } from './envelopes.ts'

export const REVISION = ['m', 1, 'aaa'] as const

export function ref(bytes: Uint8Array): TestTensor {
  return { bytes }
}

/** Answers every envelope with its first tensor. */
export const echo: TestHandler = async (_envelope, tensors, sink) => {
  sink.send(answer(tensors[0]?.bytes ?? new Uint8Array()))
}

/** Resolves with the error that the promise rejects with. */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not fail')
    },
    (error: unknown) => error,
  )
}

export function brokerAt(url: string, o: Partial<BrokerOptions> = {}): BrokerOptions {
  return { servers: [url], prefix: 'tutti', repository: 'default', ...o }
}

/** How members of a test reach one another; the broker arranges it in each case. */
export const TRANSPORTS = ['nats', 'unix', 'tls', 'tcp'] as const
export type TestTransport = (typeof TRANSPORTS)[number]

/** Opens members that use the transport. What a test sets itself comes before it. */
export function membersOver(via: TestTransport) {
  const direct = via === 'nats' ? undefined : directOptions(via)
  const settings = { directConnectMs: 5000 }
  return {
    openTestStep: (...[t, broker, member, handle, o]: Parameters<typeof openTestStep>) =>
      openTestStep(t, broker, member, handle, {
        direct,
        ...o,
        settings: { ...settings, ...o?.settings },
      }),
    openTestRouter: (...[t, broker, member, o]: Parameters<typeof openTestRouter>) =>
      openTestRouter(t, broker, member, {
        direct,
        ...o,
        settings: { ...settings, ...o?.settings },
      }),
  }
}

/** A broker of the test's own. */
export async function openBroker(t: Teardown, o: NatsServerOptions = {}): Promise<BrokerOptions> {
  const server = await startNatsServer(o)
  t.teardown(() => server.stop())
  return brokerAt(server.url)
}

/** A test, whose teardown closes what it opened. */
export interface Teardown {
  teardown(close: () => Promise<void>): void
}

const ROUTER_DESCRIPTION = { router: true }

export type TestRouter = Awaited<ReturnType<typeof openTestRouter>>

export async function openTestStep(
  t: Teardown,
  broker: BrokerOptions,
  member: string,
  handle: TestHandler,
  o: Partial<OpenStepEndpointOptions> = {},
): Promise<StepEndpoint> {
  const step = await openStepEndpoint({
    broker,
    member,
    executor: executing(handle),
    describe: () => ({ member }),
    answer: async (question, argument) => ({ question, argument, member }),
    revisions: () => [REVISION],
    load: () => ({ inFlight: 0, queued: 0, freeSlots: 8 }),
    onChange: () => () => {},
    clock: systemClock,
    log: silentLogger,
    ...o,
  })
  t.teardown(() => step.close())
  return step
}

/** A connection with valid credentials that says what it likes. */
export async function openStranger(t: Teardown, broker: BrokerOptions): Promise<BrokerConnection> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stranger = openBrokerConnection({
    broker,
    name: 'stranger',
    clock: systemClock,
    settings: ENDPOINT_DEFAULTS,
    listener: {
      connected: () => resolve(),
      disconnected: () => {},
      connectFailed: () => {},
      complained: () => {},
      handlerFailed: () => {},
    },
  })
  t.teardown(() => stranger.close(100))
  await promise
  return stranger
}

/** A router with its directory and what it was told. */
export async function openTestRouter(
  t: Teardown,
  broker: BrokerOptions,
  member: string,
  o: Partial<OpenRouterEndpointOptions> = {},
) {
  const directory = new StepDirectory()
  const changed: string[] = []
  const gone: string[] = []
  const router = await openRouterEndpoint({
    broker,
    member,
    directory,
    clock: systemClock,
    log: silentLogger,
    executor: executing(() => {
      throw new ServeError('UNSUPPORTED', 'this router takes no calls')
    }),
    answer: async (question, argument) => ({ question, argument, member }),
    describe: () => ROUTER_DESCRIPTION,
    routerChanged: () => {},
    stepChanged: (step) => void changed.push(step),
    stepGone: (step) => void gone.push(step),
    ...o,
  })
  t.teardown(() => router.close())
  /** It serves, and is reached over the transport of the test. */
  const isReached = (): boolean =>
    directory.isServed(SERVED) &&
    router.isConnected &&
    (o.direct === undefined || router.direct.length > 0)
  return { member: router, directory, changed, gone, isReached, until }
}

/** Has a replica execute an envelope. The iteration throws the failure. */
export function sendTo(
  { member }: TestRouter,
  to: { readonly replica: string },
  offered: Envelope,
  tensors: readonly TestTensor[],
  o: { readonly signal: AbortSignal },
): AsyncIterable<StepResponse> {
  return sendEnvelope(member.executor, to, offered, tensors, o)
}

/** As `sendTo`, to a router that the step chooses. */
export function sendToRouter(
  { routers }: StepEndpoint,
  offered: Envelope,
  tensors: readonly TestTensor[],
  o: { readonly signal: AbortSignal },
): AsyncIterable<StepResponse> {
  const to = { replica: 'some router' }
  return sendEnvelope((target) => routers.executor(target), to, offered, tensors, o)
}
