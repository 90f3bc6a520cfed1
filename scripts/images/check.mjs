import { existsSync } from 'node:fs'
import { SetupFailure } from '../setup/failure.mjs'
import { readImage } from './archive.mjs'
import { atExit, exitOnSignals } from './at-exit.mjs'
import { archiveOf, ask } from './build.mjs'
import { referenceOf } from './catalogue.mjs'
import { CHECKS } from './check-programs.mjs'
import { startBroker } from './check-surroundings.mjs'
import { judgeConfig, USER } from './judge-config.mjs'
import { dockerCommand, startPod, unshareCommand } from './pod-runner.mjs'

/** Of images that are no steps. */
const PROGRAM_OF = { operator: 'tutti-operator', router: 'tutti-router' }

/**
 * Runs the programs of images as a pod would, and says what does not work.
 *
 * @param {import('./build.mjs').Work} work
 * @throws SetupFailure with what failed.
 */
export async function checkImages(work) {
  const { options, engine } = work
  if (engine === 'buildah' && process.getuid?.() !== 0) {
    throw new SetupFailure('--check with buildah needs root, for a file system that is read-only.')
  }
  const release = exitOnSignals()
  const broker = await startBroker()
  const faults = []
  try {
    for (const name of options.names) faults.push(...(await checkImage(name, work, broker)))
  } finally {
    await broker.close()
    release()
  }
  if (faults.length > 0)
    throw new SetupFailure(`${faults.length} checks failed:\n${faults.join('\n')}`)
}

async function checkImage(name, work, broker) {
  const { options, version } = work
  const archive = archiveOf(name, options)
  if (!existsSync(archive)) throw new SetupFailure(`There is no ${archive}: build it first.`)
  const { config } = await readImage(archive)
  const faults = judgeConfig(config, { entrypoint: PROGRAM_OF[name] ?? 'tutti-step', version })
  report(name, 'user, entrypoint and labels', faults.join('; '))
  const image = await openImage(name, config.config.Env ?? [], work)
  try {
    for (const [what, check] of CHECKS[name] ?? []) {
      const fault = await faultOf(() => check({ start: image.start, broker, root: work.root }))
      report(name, what, fault)
      if (fault !== undefined) faults.push(`${what}: ${fault}`)
    }
  } finally {
    await image.close()
  }
  return faults.map((fault) => `  ${name}: ${fault}`)
}

/** Something that starts commands in an image. */
async function openImage(name, env, { engine, commands, options }) {
  const image = referenceOf(name, options)
  if (engine === 'docker') {
    const start = (command) => startPod(dockerCommand(command, { image, user: USER }))
    return { start, close: async () => {} }
  }
  const container = ask(commands.from(image))
  const remove = () => void ask(commands.remove(container))
  const callOff = atExit(remove)
  const root = ask(commands.mount(container))
  return {
    start: (command) => startPod(unshareCommand(command, { root, user: USER, env })),
    close: async () => {
      callOff()
      remove()
    },
  }
}

async function faultOf(check) {
  try {
    await check()
    return undefined
  } catch (error) {
    return error.message
  }
}

function report(name, what, fault) {
  console.log(`${fault ? 'FAILED' : 'ok'} ${name}: ${what}${fault ? `: ${fault}` : ''}`)
}
