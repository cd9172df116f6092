// Tells the server the reader's zone, from the sign-in page on: the first page is right at once.

import { cookie, keepCookie } from "./dom.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// This page was made for another zone, or for none: its days may begin at another hour.
export const isNews = Boolean(zone) && cookie("zone") !== zone;
if (isNews) keepCookie("zone", zone);
