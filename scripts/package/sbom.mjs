import { text } from 'node:stream/consumers'
import { runChild } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { findNpm } from '../setup/install.mjs'

/**
 * The packages of npm that `tutti` runs with, in the versions that the tests have: an SBOM of CycloneDX 1.5. Equal checkouts give
 * equal text.
 *
 * @param {string} root - of the checkout, installed.
 */
export async function packageSbom(root) {
  const { command, args } = findNpm()
  const flags = ['--workspace=@tutti/cli', '--omit=dev', '--sbom-format=cyclonedx']
  const written = Promise.withResolvers()
  const code = await runChild(
    command,
    [...args, 'sbom', ...flags, '--sbom-type=application'],
    { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
    ({ stdout }) => written.resolve(text(stdout)),
  )
  if (code !== 0) throw new SetupFailure(`npm sbom failed with exit code ${code}.`)
  // The number and the time are others in each run.
  const { serialNumber: _, ...sbom } = JSON.parse(await written.promise)
  const { timestamp: __, ...metadata } = sbom.metadata
  // npm takes the name of the folder.
  const component = { ...metadata.component, name: 'tutti' }
  return `${JSON.stringify({ ...sbom, metadata: { ...metadata, component } }, undefined, 2)}\n`
}
