import { ensureNatsServer } from '../setup/nats-server.mjs'
import { portFlags, pythonFlags, REPOSITORY, startProgram, startTutti } from './start-tutti.mjs'

const ROUTERS = 2

/**
 * Starts a nats-server, a step process for each model of systems, and two routers.
 *
 * @param {readonly { ensemble: string, steps: readonly string[] }[]} systems
 * @param {{ python?: string, keep: boolean }} o - `keep` takes the usual ports, which others can know.
 * @returns {Promise<{ servers: readonly object[], stop: () => Promise<void>, exited: Promise<unknown> }>}
 * @throws SetupFailure if there is no nats-server to be had.
 */
export async function startProcesses(systems, { python, keep }) {
  const natsServer = await ensureNatsServer()
  const models = systems.flatMap(({ steps }) => steps)
  const started = []
  // The last to come is the first to go: routers finish their requests while the steps are there.
  const stop = async () => {
    for (const group of started.splice(0).toReversed()) {
      await Promise.all(group.map((one) => one.stop()))
    }
  }
  const start = async (starts) => {
    const group = []
    started.push(group)
    const results = await Promise.allSettled(starts)
    for (const { value } of results) if (value !== undefined) group.push(value)
    for (const { reason } of results) if (reason !== undefined) throw reason
    return group
  }
  try {
    const [broker] = await start([startBroker(natsServer, keep)])
    const nats = `--nats=${broker.ready.url}`
    console.log(`nats-server            ${broker.ready.url}`)
    const steps = await start(
      models.map((model, i) =>
        startTutti([
          'step',
          REPOSITORY,
          `--model=${model}`,
          nats,
          ...pythonFlags(python),
          ...portFlags(keep ? 8100 + i * 10 : undefined),
        ]),
      ),
    )
    for (const [i, { ready }] of steps.entries()) {
      console.log(`step   ${ready.replica}  gRPC ${ready.grpcPort}  ${models[i]}`)
    }
    const routers = await start(
      Array.from({ length: ROUTERS }, (_, i) =>
        startTutti(['router', REPOSITORY, nats, ...portFlags(keep ? 8000 + i * 10 : undefined)]),
      ),
    )
    for (const { ready } of routers) {
      console.log(`router ${ready.router}  gRPC ${ready.grpcPort}  HTTP ${ready.httpPort}`)
    }
    const exited = Promise.all(routers.map((one) => one.exited))
    return { servers: routers.map(({ ready }) => ready), stop, exited }
  } catch (error) {
    await stop()
    throw error
  }
}

function startBroker(natsServer, keep) {
  const args = ['--addr', '127.0.0.1', '--port', keep ? '4222' : '-1']
  return startProgram(natsServer, args, readAddress, 'stderr')
}

function readAddress(line) {
  const found = /Listening for client connections on (\S+)/.exec(line)
  return found === null ? undefined : { url: `nats://${found[1]}` }
}
