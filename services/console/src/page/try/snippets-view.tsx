import { useState } from 'preact/hooks'
import { download } from './load-file.ts'
import type { RequestInput } from './request-input.ts'
import { curlLines, pythonLines, type SnippetSource, sharedFile } from './snippets.ts'

/** Shows the request of the form as lines for other clients, and the files that these lines read. */
export function SnippetsView({ source }: { readonly source: SnippetSource }) {
  const shared = sharedFile(source.inputs)
  if (shared !== undefined) {
    return (
      <details>
        <summary>The same request elsewhere</summary>
        <p class="reason">Two inputs have files named {shared}: rename one</p>
      </details>
    )
  }
  return (
    <details>
      <summary>The same request elsewhere</summary>
      <Made inputs={source.inputs} />
      <Code title="curl" code={curlLines(source)} />
      <Code title="Python" code={pythonLines(source)} />
    </details>
  )
}

function Made({ inputs }: { readonly inputs: readonly RequestInput[] }) {
  const files = inputs.flatMap(({ content }) =>
    content.kind === 'bytes' && content.source.isMade ? [content] : [],
  )
  return files.map(({ data, source: { file } }) => (
    <p key={file}>
      Both read elements that this page has made:{' '}
      <button type="button" class="plain" onClick={() => download(file, [data])}>
        Download {file}
      </button>
    </p>
  ))
}

function Code({ title, code }: { readonly title: string; readonly code: string }) {
  const [copied, setCopied] = useState('')
  return (
    <section aria-label={title}>
      <div class="row">
        <h3>{title}</h3>
        {/* Only pages of this machine and those over TLS have one. */}
        {navigator.clipboard && (
          <button
            type="button"
            class="plain"
            onClick={() => void navigator.clipboard.writeText(code).then(() => setCopied(code))}
          >
            {copied === code ? 'Copied' : `Copy ${title}`}
          </button>
        )}
      </div>
      <pre tabIndex={0} aria-label={`The request in ${title}`}>
        {code}
      </pre>
    </section>
  )
}
