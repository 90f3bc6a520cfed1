import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SetupFailure } from '../../scripts/setup/failure.mjs'

const MARK = 'of-a-node'
/** Any of them tells that a folder is one of a node: the second is there as long as its process is noted. */
const MARKS = [MARK, 'process.json']

/** Whether a folder is that of a node, one that is up or one that has ended: what is in it may be removed. */
export function isFolderOfNode(folder) {
  return MARKS.some((name) => existsSync(join(folder, name)))
}

/**
 * Makes a folder one of a node.
 *
 * @throws SetupFailure if it has anything in it: whatever a node's folder has goes with the node; if it cannot be made.
 */
export function claimFolder(folder) {
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw new SetupFailure(`The folder of a node cannot be made: ${error.message}.`)
  }
  const [other] = readdirSync(folder)
  if (other !== undefined) {
    throw new SetupFailure(
      `The folder of a node is removed with it: ${folder} has ${other}, want one that is empty or not there.`,
    )
  }
  // Pods go through it to their volumes.
  chmodSync(folder, 0o711)
  writeFileSync(join(folder, MARK), '')
}

/** Removes the folder of a node, its mark last: what is left if this is broken off is a node's folder still. */
export function removeFolder(folder) {
  writeFileSync(join(folder, MARK), '')
  for (const name of readdirSync(folder).filter((other) => other !== MARK)) {
    rmSync(join(folder, name), { recursive: true, force: true })
  }
  rmSync(join(folder, MARK), { force: true })
  try {
    rmdirSync(folder)
  } catch (error) {
    // Something is mounted there, or it is a link to a folder elsewhere: it stays, empty.
    if (!['EBUSY', 'ENOTDIR'].includes(error.code)) throw error
  }
}
