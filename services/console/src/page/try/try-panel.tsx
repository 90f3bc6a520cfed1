import { useMemo, useRef, useState } from 'preact/hooks'
import type { ModelDetail, Tensor } from '../../api/model-detail.ts'
import { hasToken } from '../api-client.ts'
import { Panel } from '../parts.tsx'
import { formatMs } from '../rates.ts'
import { AnswerView } from './answer-view.tsx'
import { InputField } from './input-field.tsx'
import { type Draft, firstDraft, type RequestInput, toRequestInput } from './request-input.ts'
import type { SnippetSource } from './snippets.ts'
import { SnippetsView } from './snippets-view.tsx'
import { StreamView } from './stream-view.tsx'
import { kindOf, readBytes } from './tensor-elements.ts'
import { type Outcome, useRequest } from './use-request.ts'
import { Waterfall } from './waterfall.tsx'

/** Shows a form that sends one request to a model, and the answer. */
export function TryPanel({ detail }: { readonly detail: ModelDetail }) {
  const { inputs, mayInfer } = detail
  if (inputs.length === 0) return null
  // Another signature is another form.
  return (
    <Panel title="Try it">
      {!mayInfer && (
        <p class="quiet">
          The console only shows. Start the server with <code>--console-infer</code> to send
          requests from here.
        </p>
      )}
      {mayInfer && <TryForm key={JSON.stringify(inputs)} detail={detail} />}
    </Panel>
  )
}

/** The input that a draft gives, or its problem; drafts are never changed, so each is made once. */
type Made = { readonly input: RequestInput | undefined } | { readonly problem: string }

function TryForm({ detail }: { readonly detail: ModelDetail }) {
  const [drafts, setDrafts] = useState<readonly Draft[]>(() => detail.inputs.map(firstDraft))
  const [isTried, setTried] = useState(false)
  const [version, setVersion] = useState('')
  const { outcome, send, cancel } = useRequest()
  const isBusy = outcome.kind === 'sending' || (outcome.kind === 'stream' && !outcome.isOver)
  const form = useRef<HTMLFormElement>(null)
  const made = useMade(detail.inputs, drafts)
  const inputs = made.flatMap((one) => ('input' in one && one.input ? [one.input] : []))
  const isWhole = made.every((one) => 'input' in one)
  const submit = (event: Event): void => {
    event.preventDefault()
    setTried(true)
    if (isWhole) return void send(pathOf(detail, version), inputs, detail.isDecoupled)
    const fields = form.current?.querySelectorAll('fieldset') ?? []
    const wrong = fields[made.findIndex((one) => 'problem' in one)]
    wrong?.querySelector<HTMLElement>('textarea, button')?.focus()
  }
  return (
    <form ref={form} class="try" noValidate onSubmit={submit}>
      {detail.inputs.map((tensor, i) => {
        const draft = drafts[i] ?? firstDraft(tensor)
        const one = made[i]
        const isShown = isTried || draft.isTouched
        return (
          <InputField
            key={tensor.name}
            tensor={tensor}
            draft={draft}
            problem={isShown && one !== undefined && 'problem' in one ? one.problem : ''}
            change={(edit) => setDrafts((all) => all.with(i, edit(all[i] ?? firstDraft(tensor))))}
          />
        )
      })}
      <div class="row">
        <button type="submit" disabled={isBusy}>
          Send
        </button>
        {isBusy && (
          <button type="button" class="plain" onClick={cancel}>
            Cancel
          </button>
        )}
        <VersionField detail={detail} version={version} change={setVersion} />
      </div>
      <OutcomeView outcome={outcome} />
      {detail.isDecoupled && (
        <p class="quiet">
          Other clients need a stream of gRPC for any number of responses:{' '}
          <code>tutti infer {detail.name}</code>
        </p>
      )}
      {isWhole && !detail.isDecoupled && detail.http && (
        <SnippetsView
          source={snippetSource({ detail, http: detail.http, version, inputs, outcome })}
        />
      )}
    </form>
  )
}

function useMade(tensors: readonly Tensor[], drafts: readonly Draft[]): readonly Made[] {
  const known = useRef(new WeakMap<Draft, Made>())
  return tensors.map((tensor, i) => {
    const draft = drafts[i] ?? firstDraft(tensor)
    const found = known.current.get(draft) ?? make(tensor, draft)
    known.current.set(draft, found)
    return found
  })
}

function make(tensor: Tensor, draft: Draft): Made {
  try {
    return { input: toRequestInput(tensor, draft) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

function VersionField(o: {
  readonly detail: ModelDetail
  readonly version: string
  readonly change: (version: string) => void
}) {
  const ready = o.detail.versions.filter(({ state }) => state === 'READY')
  if (ready.length < 2) return null
  return (
    <label class="row">
      Version
      <select value={o.version} onChange={({ currentTarget: { value } }) => o.change(value)}>
        <option value="">latest</option>
        {ready.map(({ version }) => (
          <option key={version} value={version}>
            {version}
          </option>
        ))}
      </select>
    </label>
  )
}

function OutcomeView({ outcome }: { readonly outcome: Outcome }) {
  // The views around it are drawn each second.
  return useMemo(() => {
    if (outcome.kind === 'failure') {
      const { message, reason } = outcome.failure
      return (
        <>
          <p class="trouble" role="alert">
            {message} {reason !== '' && <span class="mono">{reason}</span>}
          </p>
          <Waterfall recorded={outcome.recorded} />
        </>
      )
    }
    if (outcome.kind === 'stream') return <StreamView {...outcome} />
    return (
      <>
        <p role="status" class="quiet">
          {outcome.kind === 'sending' && 'Sending …'}
          {outcome.kind === 'answer' &&
            `Version ${outcome.answer.modelVersion} answered in ${formatMs(outcome.elapsedMs)}.`}
        </p>
        {outcome.kind === 'answer' && <AnswerView answer={outcome.answer} />}
        {outcome.kind === 'answer' && <Waterfall recorded={outcome.recorded} />}
      </>
    )
  }, [outcome])
}

function pathOf({ name, isDecoupled }: ModelDetail, version: string): string {
  const path = `/console/api/models/${encodeURIComponent(name)}`
  const versioned = version === '' ? path : `${path}/versions/${version}`
  return `${versioned}/${isDecoupled ? 'stream' : 'infer'}`
}

function snippetSource(o: {
  readonly detail: ModelDetail
  readonly http: { readonly port: number; readonly isSecure: boolean }
  readonly version: string
  readonly inputs: readonly RequestInput[]
  readonly outcome: Outcome
}): SnippetSource {
  const { detail, http, version, inputs, outcome } = o
  const hasNoJson =
    detail.outputs.some(({ datatype }) => datatype === 'FP16' || datatype === 'BF16') ||
    (outcome.kind === 'answer' &&
      outcome.answer.outputs.some(
        ({ datatype, data }) =>
          datatype === 'BYTES' && readBytes(data, 16).first.some((one) => kindOf(one) !== 'text'),
      ))
  return {
    model: detail.name,
    version,
    inputs,
    outputs: detail.outputs.map((output) => output.name),
    isBinaryAnswer: hasNoJson,
    isSecure: http.isSecure,
    host: `${location.hostname}:${http.port || 'PORT'}`,
    hasToken: hasToken(),
  }
}
