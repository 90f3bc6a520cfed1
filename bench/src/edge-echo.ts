import { silentLogger, systemClock } from '@tutti/chassis'
import { openStepEndpoint } from '@tutti/transport'
import { connect } from 'nats'
import { toDirect } from './edge-direct.ts'
import { answerParent } from './forked.ts'
import { ECHO_SUBJECT } from './raw-subject.ts'
import { answerTcp } from './raw-tcp.ts'
import { RawWire } from './raw-wire.ts'

/*
 * The answering end of an edge, as a process: `raw URL` answers requests of the plain client with their own bytes, `wire URL` those
 * of the least client, `socket` those of a plain socket, and says its port,
 * `transport URL MODEL [KIND]` does so as a step whose model costs nothing, and takes direct connections if a kind is given.
 */

async function openRaw(url: string): Promise<void> {
  const client = await connect({ servers: url })
  client.subscribe(ECHO_SUBJECT, { callback: (_, message) => void message.respond(message.data) })
  await client.flush()
}

async function openWire(url: string): Promise<void> {
  const wire = new RawWire(url, ({ bytes, reply, release }) =>
    wire.publish(reply, '', bytes, release),
  )
  await wire.open(ECHO_SUBJECT)
}

async function openTransport(url: string, model: string, via: string): Promise<void> {
  await openStepEndpoint({
    broker: { servers: [url], prefix: 'tutti', repository: 'default' },
    direct: toDirect(via),
    member: 'bench-echo',
    executor: () => ({
      execute: ({ inputs }, sink) =>
        sink.send({ index: 0, final: true, outputs: inputs, parameters: new Map() }),
    }),
    describe: () => ({}),
    answer: async () => ({}),
    revisions: () => [[model, 1, 'echo']],
    load: () => ({ inFlight: 0, queued: 0, freeSlots: 1 }),
    onChange: () => () => {},
    clock: systemClock,
    log: silentLogger,
  })
}

const [kind, url = '', model = '', via = ''] = process.argv.slice(2)
let port = 0
if (kind === 'raw') await openRaw(url)
else if (kind === 'wire') await openWire(url)
else if (kind === 'socket') port = await answerTcp()
else await openTransport(url, model, via)
answerParent(async () => port)
