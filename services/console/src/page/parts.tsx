import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Tensor } from '../api/model-detail.ts'
import type { Version } from '../api/overview.ts'
import { type CallFailure, hasToken, setToken } from './api-client.ts'

/** Shows a state in words and colour. */
export function State({ state }: { readonly state: string }) {
  const tone = state === 'READY' ? 'good' : state === 'UNAVAILABLE' ? 'bad' : 'idle'
  return <span class={`state ${tone}`}>{state.toLowerCase()}</span>
}

export function Versions({ versions }: { readonly versions: readonly Version[] }) {
  return (
    <span class="versions">
      {versions.map(({ version, state }) => (
        <span key={version} class="version">
          {version !== '' && <span class="quiet">v{version} </span>}
          <State state={state} />
        </span>
      ))}
    </span>
  )
}

/** Lists the reasons why versions are not ready, each reason once. */
export function Reasons({ versions }: { readonly versions: readonly Version[] }) {
  const reasons = new Set(versions.map(({ reason }) => reason).filter((reason) => reason !== ''))
  return [...reasons].map((reason) => (
    <p key={reason} class="reason">
      {reason}
    </p>
  ))
}

export function shapeOf({ datatype, shape }: Pick<Tensor, 'datatype' | 'shape'>): string {
  return `${datatype || '?'}${datatype === '' ? '' : ` [${shape.join(', ')}]`}`
}

/** Makes the heads of columns of numbers. */
export function NumberHeads({ titles }: { readonly titles: readonly string[] }) {
  return titles.map((title) => (
    <th key={title} scope="col" class="number">
      {title}
    </th>
  ))
}

export function Panel(o: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="panel">
      <h2>{o.title}</h2>
      {o.children}
    </section>
  )
}

/** Shows a failure, or that a view loads. It stands in place of the view's data, or above data that is out of date. */
export function Trouble({
  failure,
  hasData,
}: {
  readonly failure: CallFailure | undefined
  readonly hasData: boolean
}) {
  if (failure === undefined) return hasData ? null : <p class="quiet">Loading …</p>
  if (failure.status === 401) return <SignIn text={failure.message} />
  return (
    <p class="trouble" role="alert">
      {failure.message}
      {hasData && ' What you see is what it said last.'} The console tries again.
    </p>
  )
}

/** Says that there are no counts, above data without them. @param why - the error; '' if there are counts: shows nothing. */
export function MissingFigures({ why }: { readonly why: string }) {
  if (why === '') return null
  return (
    <p class="trouble" role="status">
      There are no figures now: {why}
    </p>
  )
}

function SignIn({ text }: { readonly text: string }) {
  const [token, setWritten] = useState('')
  return (
    <form
      class="panel sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        setToken(token.trim())
        location.reload()
      }}
    >
      <h2>This server asks who you are</h2>
      {hasToken() && <p class="reason">{text}</p>}
      <label>
        Access token
        <input
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setWritten(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Continue</button>
      <p class="quiet">The token stays in this tab. You see what its identity may see.</p>
    </form>
  )
}
