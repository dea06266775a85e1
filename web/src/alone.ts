/** One pass in one file, without a server: what `regard attend --html` writes. */

import { mount } from 'svelte'
import Alone from './Alone.svelte'
import { type Place, read } from './lib/link'
import { Look } from './lib/look'
import { page } from './lib/page.svelte'
import { unpacked } from './lib/payload'
import type { Asked, LookValues, Model } from './lib/types'
import './page.css'

const base64 = document.getElementById('payload')!.textContent!.trim()
const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
const payload = unpacked<LookValues & { model: Model; asked: Partial<Asked>; version: string; place: Partial<Place> }>(bytes.buffer)
page.alone({ version: payload.values.version, models: [payload.values.model] }, new Look(payload), payload.values.asked, location.hash.length > 1 ? read(location.hash) : payload.values.place)
mount(Alone, { target: document.getElementById('page')! })
