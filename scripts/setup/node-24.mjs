import { realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { firstLine } from './child.mjs'
import { SetupFailure } from './failure.mjs'

const WANTED_MAJOR = 24
const OLDEST_MAJOR = 20

/** @throws SetupFailure if the Node that runs us is too old even to install with. */
export function checkSystemNode() {
  if (majorOf(process.version) >= OLDEST_MAJOR) return
  throw new SetupFailure(
    `Tutti needs Node ${OLDEST_MAJOR} or newer to set itself up; this is ${process.version}.\n` +
      'Install a newer one from https://nodejs.org and run the command again.',
  )
}

/**
 * The Node that runs Tutti: the one in node_modules, where npm has one for this platform, else the system's.
 *
 * @param {string} root - of the checkout, installed.
 * @throws SetupFailure if neither is Node 24 or newer.
 */
export function findNode24(root) {
  const installed = join(root, 'node_modules', '.bin', 'node')
  if (isWanted(firstLine(installed, ['--version']))) return realpathSync(installed)
  if (isWanted(process.version)) return process.execPath
  throw new SetupFailure(
    `Tutti runs on Node ${WANTED_MAJOR} or newer; this is ${process.version}, and npm has no Node ` +
      `${WANTED_MAJOR} for ${process.platform}-${process.arch} that runs here.\n` +
      `Install Node ${WANTED_MAJOR} from https://nodejs.org and run the command again.`,
  )
}

/** The environment in which programs of node_modules are found first, Node among them. */
export function toolEnvironment(root) {
  const bin = join(root, 'node_modules', '.bin')
  return { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` }
}

function isWanted(version) {
  return version !== undefined && majorOf(version) >= WANTED_MAJOR
}

function majorOf(version) {
  return Number(version.replace(/^v/, '').split('.')[0])
}
