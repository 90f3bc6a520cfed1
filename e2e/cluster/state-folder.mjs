import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SetupFailure } from '../../scripts/setup/failure.mjs'

const MARK = 'of-a-node'

/** Whether a folder is that of a node, one that is up or one that has ended: what is in it may be removed. */
export function isFolderOfNode(folder) {
  return existsSync(join(folder, MARK))
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

/** Empties the folder of a node, its mark last: what is left if this is broken off is a node's folder still. */
export function emptyFolder(folder) {
  for (const name of [...readdirSync(folder).filter((other) => other !== MARK), MARK]) {
    rmSync(join(folder, name), { recursive: true, force: true })
  }
}
