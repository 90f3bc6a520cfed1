// Writes docs/errors.md: each reason of the catalogue with its codes, what it means and what to do, under an anchor of its own,
// which errors carry to clients.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERROR_TEXTS } from './error-texts.mjs'

/**
 * @param {string} root - of the checkout.
 * @param {Record<string, { code: string, meaning: string, status: number }>} reasons - the catalogue, each with its usual status in HTTP.
 * @throws Error for a reason without a text, and for a text without a reason.
 */
export function writeErrors(root, reasons) {
  const written = Object.values(ERROR_TEXTS).flatMap((texts) => Object.keys(texts))
  for (const reason of Object.keys(reasons)) {
    if (written.filter((one) => one === reason).length === 1) continue
    throw new Error(`reason ${reason} has not one text, want one in scripts/gen/error-texts.mjs`)
  }
  const unknown = written.find((reason) => !Object.hasOwn(reasons, reason))
  if (unknown !== undefined)
    throw new Error(`scripts/gen/error-texts.mjs: there is no reason ${unknown}`)
  writeFileSync(join(root, 'docs', 'errors.md'), renderPage(reasons))
}

function renderPage(reasons) {
  const groups = Object.entries(ERROR_TEXTS).map(([title, texts]) => {
    const parts = Object.entries(texts).map(([reason, text]) =>
      renderReason({ reason, text, ...reasons[reason] }),
    )
    return `## ${title}\n\n${parts.join('\n')}`
  })
  return `# Errors

After reading this page you can tell from the reason of an error what it means and what to do. \`npm run gen\` writes the page.

An error has a text for people and a reason for programs, which keeps its meaning for ever. The text is Triton's where Triton has one.
Branch on the reason, never on the text. It stands, with the address of its paragraph here,

- in REST in the headers \`tutti-error-reason\` and \`tutti-error-help\`,
- in gRPC in the status details (\`grpc-status-details-bin\`) as \`google.rpc.ErrorInfo\` and \`google.rpc.Help\`,
- in log lines as \`reason\`,
- and below what \`tutti\` prints when it fails.

The codes are the usual ones: a few errors have another one, as in Triton. [Conditions](conditions.md) of Kubernetes have reasons of their own.

${groups.join('\n')}`
}

function renderReason({ reason, text, code, status, meaning }) {
  return `### ${reason}\n\ngRPC \`${code}\`, HTTP ${status}: ${meaning}.\n\n${text}\n`
}
